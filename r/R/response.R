# y by family: what Python takes, and what is needed to name the classes afterwards.

# y of all tasks: a list of vectors (a list of tasks), or a list of one. `values` is a list again, in Python's form.
read_response <- function(y, family, sizes, names) {
  for (t in seq_along(y)) {
    n <- NROW(y[[t]])
    if (n != sizes[t]) {
      give_up(names$y(t), " has ", n, " rows, and ", names$x(t), " has ", sizes[t], ".")
    }
  }
  switch(family$outcome,
    numbers = ,
    columns = read_numbers(y, family, names),
    classes = read_classes(y, family, names),
    survival = list(values = lapply(seq_along(y), function(t) read_survival(y[[t]], names$y(t))))
  )
}

read_numbers <- function(y, family, names) {
  values <- lapply(seq_along(y), function(t) {
    own <- y[[t]]
    if (is.data.frame(own)) own <- as.matrix(own)
    if (!is.numeric(own) && !is.logical(own)) {
      give_up(names$y(t), " must be numbers with family = \"", family$name, "\"; it is ", class(own)[1], ".")
    }
    if (family$outcome == "columns" && !is.matrix(own)) {
      give_up("y must be a matrix with family = \"mgaussian\", a column for each response.")
    }
    if (is.matrix(own) && ncol(own) == 1) own <- drop(own)
    if (is.matrix(own)) matrix(as.double(own), nrow(own), dimnames = dimnames(own)) else as.double(own)
  })
  list(values = lapply(values, to_python), plain = values)
}

read_classes <- function(y, family, names) {
  least <- if (family$name == "binomial") 2 else 3
  columns <- is.matrix(y[[1]]) && ncol(y[[1]]) > 1
  if (columns && family$name != "binomial") {
    give_up("y must be a factor or a vector of classes with family = \"", family$name, "\".")
  }
  if (columns && all(y[[1]] %in% c(0, 1, NA)) && all(rowSums(y[[1]], na.rm = TRUE) == 1) && ncol(y[[1]]) == 2) {
    give_up("y has two columns, one for each class: give a factor, or the second column as a vector.")
  }
  if (columns && !all(y[[1]] %in% c(0, 1, NA))) {
    give_up("y is a matrix of counts or shares: give a row for each case, with weights.")
  }
  parts <- lapply(y, function(own) {
    if (is.matrix(own) && ncol(own) == 1) own <- drop(own)
    if (is.factor(own) || is.matrix(own)) own else factor(own)
  })
  classes <- if (columns) c("0", "1") else known_classes(parts)
  if (length(classes) < least || (least == 2 && length(classes) > 2)) {
    give_up(
      "y has ", length(classes), " classes (", toString(utils::head(classes, 5)), "), and family = \"", family$name,
      "\" takes ", if (least == 2) "2" else "3 or more", ": use \"",
      if (length(classes) == 2) "binomial" else "multinomial", "\"."
    )
  }
  values <- lapply(parts, function(own) {
    if (is.matrix(own)) matrix(as.double(own), nrow(own), dimnames = dimnames(own)) else match(as.character(own), classes) - 1
  })
  list(values = lapply(values, to_python), plain = values, classes = classes)
}

# Levels in use, in the order of the first factor that has them.
known_classes <- function(parts) {
  all <- unique(unlist(lapply(parts, levels)))
  if (!all(vapply(parts, function(own) identical(levels(own), levels(parts[[1]])), NA))) {
    numbers <- suppressWarnings(as.numeric(all))
    all <- if (anyNA(numbers)) sort(all) else all[order(numbers)]
  }
  all[all %in% unlist(lapply(parts, function(own) as.character(unique(own))))]
}

read_survival <- function(y, name) {
  strata <- attr(y, "strata")
  if (is.data.frame(y)) y <- as.matrix(y)
  if (inherits(y, "Surv")) {
    type <- attr(y, "type")
    if (!type %in% c("right", "counting")) {
      give_up(name, " is a Surv object of type \"", type, "\": \"right\" and \"counting\" are read.")
    }
  } else if (!is.matrix(y) || !all(c("time", "status") %in% colnames(y))) {
    give_up(name, " must be a Surv object, or a matrix with the columns \"time\" and \"status\".")
  }
  y <- unclass(y)
  counting <- "start" %in% colnames(y)
  time <- y[, if (counting) "stop" else "time"]
  if (!is.null(strata)) strata <- as_array(as.integer(factor(strata)))
  entry <- if (counting) as_array(as.double(y[, "start"]))
  ask("outcome", as_array(as.double(time)), as_array(as.double(y[, "status"])), entry, strata, .keep = TRUE)
}

to_python <- function(values) {
  if (is.matrix(values)) view(values) else as_array(values)
}
