# Formulas and data frames.

#' @rdname tasksieve
#' @export
tasksieve.formula <- function(x, data, task = NULL, weights = NULL, offset = NULL, na.action = stats::na.omit, ...) {
  call <- called(match.call(), "tasksieve")
  rows <- rows_of_formula(x, data, task, weights, offset, na.action)
  fit <- tasksieve.default(rows$x, rows$y, rows$task, weights = rows$weights, offset = rows$offset, ...)
  with_frame(fit, rows, call)
}

#' @rdname tasksieve
#' @export
tasksieve.data.frame <- function(x, y, task = NULL, ...) {
  call <- called(match.call(), "tasksieve")
  fit <- tasksieve.formula(formula_of(x, y), x, task = task, ...)
  fit$call <- call
  fit
}

formula_of <- function(x, y) {
  if (!is.character(y) || length(y) != 1 || !y %in% names(x)) {
    give_up("x is a data frame: y must be the name of one of its columns, or use a formula.")
  }
  reformulate(".", response = as.name(y))
}

with_frame <- function(fit, rows, call) {
  fit$call <- call
  fit$frame <- rows[c("terms", "levels", "contrasts", "task_name")]
  fit
}

# A formula on a data frame as x, y, task: factors as glmnet's users make them, by model.matrix without its intercept.
rows_of_formula <- function(formula, data, task, weights, offset, na.action) {
  if (missing(data) || !is.data.frame(data)) {
    give_up("a formula needs a data frame: data = .")
  }
  task_name <- name_of_task(task, data)
  labels <- if (is.null(task_name)) task else data[[task_name]]
  data_used <- data[setdiff(names(data), task_name)]
  frame <- model.frame(formula, data_used, na.action = na.action, drop.unused.levels = TRUE)
  left <- attr(frame, "na.action")
  kept <- function(values) if (is.null(values) || is.null(left)) values else values[-left]
  labels <- kept(labels)
  if (anyNA(labels)) {
    give_up("task is missing for some rows: leave these out.")
  }
  parts <- attr(frame, "terms")
  x <- model.matrix(parts, frame)
  list(
    x = x[, colnames(x) != "(Intercept)", drop = FALSE], y = stats::model.response(frame), task = labels,
    weights = kept(weights), offset = kept(offset),
    terms = stats::delete.response(parts), levels = stats::.getXlevels(parts, frame), contrasts = attr(x, "contrasts"),
    task_name = task_name
  )
}

name_of_task <- function(task, data) {
  if (inherits(task, "formula")) {
    task <- all.vars(task)
    if (length(task) != 1) give_up("task must name one column: task = ~ site.")
  }
  if (is.character(task) && length(task) == 1 && nrow(data) != 1) {
    if (!task %in% names(data)) give_up("there is no column \"", task, "\" for task.")
    return(task)
  }
  NULL
}

# New rows of a formula's model, and their tasks.
new_frame <- function(frame, newx, task) {
  if (is.null(frame) || !is.data.frame(newx)) {
    return(list(x = newx, task = task))
  }
  if (is.null(task) && !is.null(frame$task_name)) {
    task <- newx[[frame$task_name]]
  }
  rows <- model.frame(frame$terms, newx, xlev = frame$levels, na.action = stats::na.fail)
  x <- model.matrix(frame$terms, rows, contrasts.arg = frame$contrasts)
  list(x = x[, colnames(x) != "(Intercept)", drop = FALSE], task = task)
}
