# Survival curves: the model of one value fitted again, with the rows, which the baseline hazard needs.

predict_survival <- function(object, new, s, times, x, y, fit.task, weights, offset, newoffset, strata) {
  if (object$family != "cox") {
    give_up("type = \"survival\" is for family = \"cox\".")
  }
  if (length(s) != 1) {
    give_up("type = \"survival\" takes one value of s.")
  }
  if (is.null(x) || is.null(y)) {
    give_up("type = \"survival\" needs x and y, the data of the fit: the baseline hazard is a sum over its rows.")
  }
  if (!is.null(newoffset) || object$offset) {
    give_up("type = \"survival\" takes no offset.")
  }
  problem <- again(object, x, y, fit.task, weights, offset)
  if (is.null(times)) {
    times <- as.vector(ask("event_times", problem$data$python$y))
  }
  one <- options_of_one(problem, s)
  newx <- if (is.list(new$x)) give_up("newx must be a matrix for type = \"survival\".") else as_design(new$x)$python
  task <- if (!is.null(new$task)) task_for_python(object, new$task)
  if (is.null(task) && length(object$tasks) > 1) {
    give_up("task is missing: survival is that of one task for each row.")
  }
  if (!is.null(strata)) strata <- as_array(as.integer(factor(strata)))
  found <- ask(
    "survival_curves", problem$model$loss, one, problem$data$python, newx, as_array(as.double(times)), task, strata
  )
  found <- matrix(found, ncol = length(times))
  structure(found, times = times)
}

# The data and the model of a fit, given its data again.
again <- function(object, x, y, task, weights, offset) {
  if (!is.null(object$frame) && is.data.frame(x)) {
    new <- new_frame(object$frame, x, task)
    x <- new$x
    task <- new$task
  }
  problem <- do.call(read_problem, c(list(x, y, task, object$family, weights, offset), object$arguments))
  if (problem$data$n_features != object$dim[1] || sum(problem$data$sizes) != object$nobs) {
    give_up(
      "x has ", sum(problem$data$sizes), " rows and ", problem$data$n_features, " columns, and the fit had ",
      object$nobs, " and ", object$dim[1], ": these are other data."
    )
  }
  problem
}

# Options of one value: its strength, and its ridge in the units of the objective.
options_of_one <- function(problem, s) {
  options <- problem$model$options
  options$alpha <- s * problem$model$unit
  options$ridge <- options$ridge * options$alpha
  options
}

# Labels as the fit gave them to Python: places in a list, else themselves.
task_for_python <- function(object, task) {
  codes <- task_codes(task, object$tasks)
  if (object$form == "list") {
    return(as_array(codes - 1L))
  }
  labels_for_python(task)
}
