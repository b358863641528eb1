# x, y, task, weights and offset in all their forms, as Python takes them.

# What belongs to rows: `python`, the arguments of fit() there; and what R needs to know of the data.
read_data <- function(x, y, task, weights, offset, family) {
  listed <- is.list(x) && !is.data.frame(x) && !is.object(x)
  if (listed && !is.null(task)) {
    give_up("x is a list of matrices, one per task: drop task.")
  }
  if (listed && (!is.list(y) || length(y) != length(x))) {
    give_up("x is a list of ", length(x), " matrices, so y must be a list of as many.")
  }
  names <- if (listed) names_of_parts(x) else list(x = function(t) "x", y = function(t) "y")
  designs <- lapply(if (listed) x else list(x), as_design)
  sizes <- vapply(designs, function(design) design$dim[1], 1L)
  widths <- vapply(designs, function(design) design$dim[2], 1L)
  if (any(widths != widths[1])) {
    give_up(names$x(which(widths != widths[1])[1]), " has another number of columns than ", names$x(1), ".")
  }
  response <- read_response(if (listed) y else list(y), family, sizes, names)
  rows <- function(values, what) per_row(values, what, listed, sizes, names)
  unlisted <- function(values) if (listed) unname(values) else values[[1]]
  python <- list(
    X = unlisted(lapply(designs, `[[`, "python")),
    y = unlisted(response$values),
    sample_weight = rows(weights, "weights"),
    offset = rows(offset, "offset")
  )
  python$task <- if (!is.null(task)) task_labels(task, sizes)
  columns <- if (!listed && is.matrix(response$plain[[1]])) response$plain[[1]]
  list(
    python = python[!vapply(python, is.null, NA)],
    listed = listed,
    # labels of tasks in the order of Python; NULL: the path says
    tasks = if (listed) part_names(x) else if (!is.null(columns)) column_names(columns),
    form = if (listed) "list" else if (!is.null(columns)) "columns" else if (is.null(task)) "one" else "rows",
    sizes = sizes, n_features = widths[1], names = feature_names(designs),
    stays = any(vapply(designs, `[[`, NA, "stays")),
    classes = response$classes, plain = response$plain,
    weights = weights, offset = offset, task = task
  )
}

part_names <- function(x) {
  if (is.null(names(x)) || any(!nzchar(names(x))) || anyDuplicated(names(x))) as.character(seq_along(x)) else names(x)
}

names_of_parts <- function(x) {
  named <- part_names(x)
  list(x = function(t) sprintf("x[[\"%s\"]]", named[t]), y = function(t) sprintf("y[[\"%s\"]]", named[t]))
}

column_names <- function(y) {
  if (is.null(colnames(y))) paste0("y", seq_len(ncol(y))) else colnames(y)
}

feature_names <- function(designs) {
  given <- designs[[1]]$names
  for (design in designs[-1]) {
    if (!identical(design$names, given)) {
      give_up("the matrices of x have different names of columns: bring them into one order.")
    }
  }
  if (is.null(given)) paste0("V", seq_len(designs[[1]]$dim[2])) else given
}

# Weights or offsets: a vector, or in a list of tasks a list of vectors.
per_row <- function(values, what, listed, sizes, names) {
  if (is.null(values)) {
    return(NULL)
  }
  if (listed && !is.list(values)) {
    give_up("x is a list, so ", what, " must be a list, too: a vector for each task.")
  }
  values <- if (listed) values else list(values)
  if (length(values) != length(sizes) || any(vapply(values, NROW, 1L) != sizes)) {
    give_up(what, " must have an entry for each row of x.")
  }
  found <- lapply(unname(values), function(own) {
    if (is.matrix(own)) view(own) else as_array(as.double(own))
  })
  if (listed) found else found[[1]]
}

task_labels <- function(task, sizes) {
  if (length(task) != sizes[1]) {
    give_up("task has ", length(task), " labels, and x has ", sizes[1], " rows.")
  }
  if (anyNA(task)) {
    give_up("task[", which(is.na(task))[1], "] is NA: every row needs its task.")
  }
  labels_for_python(task)
}

# Whole numbers as such, so that they are sorted by size; all else as words, by which both sides know them.
labels_for_python <- function(task) {
  if (is.numeric(task) && all(task == round(task)) && max(abs(task)) < .Machine$integer.max) {
    return(as_array(as.integer(task)))
  }
  task <- factor(task)
  ask("labels", as.list(levels(task)), as_array(as.integer(task) - 1L), .keep = TRUE)
}
