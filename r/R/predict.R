#' Predictions of a path
#'
#' @param object Of [tasksieve()].
#' @param newx New rows in a form that [tasksieve()] takes: a matrix, a list of matrices (one per task), for a fit by formula a data frame, for a
#'   fit to a file a path.
#' @param s Values of lambda, as in [coef.tasksieve()].
#' @param task The task of each row. Without it, and with several tasks, the prediction of every task is returned.
#' @param type `"link"`: the linear prediction. `"response"`: means, probabilities, rates, relative risks. `"class"`: the most
#'   probable class. `"nonzero"`: the columns in use. `"coefficients"`: as [coef.tasksieve()]. `"survival"`: the probability to be without
#'   an event until `times`, of a Cox model.
#' @param newoffset Needed where the fit had an offset.
#' @param times Of survival; by default all times of events.
#' @param x,y The data of the fit, for `type = "survival"`: the baseline hazard needs its rows (as glmnet's `survfit`). `fit.task`, `weights`, `offset`: what
#'   the fit had of them.
#' @param strata The stratum of each new row, where the fit had strata.
#' @param fit.task,weights,offset See `x`.
#' @param ... Not used.
#' @return As of glmnet: a matrix (rows x values); an array (rows x classes x values) with several classes, rows x tasks x values for several tasks
#'   without `task`; a list for a list. Survival: a matrix (rows x times) with the attribute `"times"`, for one `s`.
#' @export
#' @examplesIf tasksieve_available()
#' x <- matrix(rnorm(200), 40)
#' fit <- tasksieve(x, rpois(40, exp(x[, 1] / 2)), family = "poisson")
#' predict(fit, x[1:3, ], s = c(0.1, 0.01), type = "response")
predict.tasksieve <- function(object, newx, s = NULL, task = NULL,
                              type = c("link", "response", "class", "nonzero", "coefficients", "survival"),
                              newoffset = NULL, times = NULL, x = NULL, y = NULL, fit.task = NULL, weights = NULL,
                              offset = NULL, strata = NULL, ...) {
  refuse_others(...)
  type <- match.arg(type)
  if (type == "coefficients") {
    return(coef(object, s))
  }
  if (type == "nonzero") {
    return(columns_in_use(object, s))
  }
  if (missing(newx)) {
    give_up("newx is missing: the rows to predict.")
  }
  new <- new_frame(object$frame, newx, task)
  if (type == "survival") {
    return(predict_survival(object, new, s, times, x, y, fit.task, weights, offset, newoffset, strata))
  }
  at <- at_values(object, s)
  if (is.list(new$x)) {
    return(predict_list(object, new$x, at, type, newoffset))
  }
  answer(object, link(object, new$x, at, new$task, newoffset), at, type, new$task)
}

columns_in_use <- function(object, s) {
  at <- at_values(object, s)
  used <- Reduce(`|`, lapply(rows_of(object)$beta, function(beta) as.matrix(mixed_columns(beta, at)) != 0))
  setNames(lapply(seq_along(at$names), function(k) unname(which(used[, k]))), at$names)
}

predict_list <- function(object, newx, at, type, newoffset) {
  if (length(newx) != length(object$tasks)) {
    give_up("newx is a list of ", length(newx), " matrices, and the fit has ", length(object$tasks), " tasks.")
  }
  known <- if (is.null(names(newx))) object$tasks else names(newx)
  found <- lapply(seq_along(newx), function(t) {
    task <- rep(known[t], NROW(newx[[t]]))
    answer(object, link(object, newx[[t]], at, task, newoffset[[t]]), at, type, task)
  })
  setNames(found, known)
}

# Linear predictions, rows x outputs x values: outputs are tasks, or of the rows' own task its classes.
link <- function(object, newx, at, task, newoffset) {
  outputs <- object$outputs
  several <- length(object$tasks) > 1
  codes <- if (is.null(task)) NULL else task_codes(task, object$tasks)
  if (several && is.null(codes) && !is.null(outputs$class)) {
    give_up("task is missing: with several classes, rows are predicted for one task each.")
  }
  if (object$offset && is.null(newoffset)) {
    give_up("the fit had an offset: give newoffset.")
  }
  z <- if (is.character(newx)) link_of_file(object, newx, at, task) else link_in_memory(object, newx, at)
  if (!is.null(codes) && length(codes) != dim(z)[1]) {
    give_up("task has ", length(codes), " labels, and newx has ", dim(z)[1], " rows.")
  }
  if (several && !is.null(codes)) {
    z <- own_task(z, codes, outputs)
  }
  if (!is.null(newoffset)) {
    if (NROW(newoffset) != dim(z)[1]) give_up("newoffset must have an entry for each row of newx.")
    z <- z + if (is.matrix(newoffset)) as.vector(newoffset) else rep(newoffset, length.out = dim(z)[1])
  }
  z
}

link_in_memory <- function(object, newx, at) {
  if (is.data.frame(newx) || !(is.matrix(newx) || is(newx, "Matrix"))) {
    give_up("newx must be a matrix, or for a fit by formula a data frame; it is ", class(newx)[1], ".")
  }
  if (ncol(newx) != object$dim[1]) {
    give_up("newx has ", ncol(newx), " columns, and the fit has ", object$dim[1], ".")
  }
  rows <- rows_of(object)
  beta <- lapply(rows$beta, mixed_columns, at = at)
  used <- which(Reduce(`+`, lapply(beta, function(own) Matrix::rowSums(own != 0))) > 0)
  part <- newx[, used, drop = FALSE]
  z <- array(0, c(nrow(newx), length(beta), length(at$names)), list(rownames(newx), NULL, at$names))
  for (r in seq_along(beta)) {
    z[, r, ] <- as.matrix(part %*% as.matrix(beta[[r]][used, , drop = FALSE])) +
      rep(mixed_columns(rows$a0[r, , drop = FALSE], at), each = nrow(newx))
  }
  z
}

# Of rows in a file Python reads what is needed.
link_of_file <- function(object, newx, at, task) {
  if (is.null(object$path) || reticulate::py_is_null_xptr(object$path)) {
    give_up("rows in a file are predicted by the Python object of the fit, which is gone (a saved fit has none): fit again.")
  }
  if (!is.null(object$outputs$class)) {
    give_up("rows in a file are predicted for one number per task; for several classes read the rows.")
  }
  values <- unique(c(at$left, at$right))
  X <- design_of_file(newx)$python
  z <- ask("scores", object$path, X, as_array(as.integer(values - 1)), NULL)
  left <- z[, , match(at$left, values), drop = FALSE]
  right <- z[, , match(at$right, values), drop = FALSE]
  z <- sweep(left, 3, at$share, "*") + sweep(right, 3, 1 - at$share, "*")
  dimnames(z) <- list(NULL, NULL, at$names)
  z
}

task_codes <- function(task, tasks) {
  codes <- match(as.character(task), tasks)
  if (anyNA(codes)) {
    give_up("there is no task ", task[which(is.na(codes))[1]], " in the fit: it has ", toString(utils::head(tasks, 5)), ".")
  }
  codes
}

# Of all tasks' predictions those of each row's own.
own_task <- function(z, codes, outputs) {
  each <- if (is.null(outputs$class)) 1 else max(tabulate(outputs$task))
  if (any(tabulate(outputs$task) != each)) {
    give_up("tasks have different classes here: predict the rows of each task with a list.")
  }
  found <- array(0, c(dim(z)[1], each, dim(z)[3]), list(dimnames(z)[[1]], NULL, dimnames(z)[[3]]))
  for (t in unique(codes)) {
    found[codes == t, , ] <- z[codes == t, which(outputs$task == t), , drop = FALSE]
  }
  found
}

answer <- function(object, z, at, type, task) {
  family <- family_of(object$family)
  if (family$name == "ordinal" && type != "link") {
    return(ordered_answer(object, z, at, type, task))
  }
  classes <- length(object$classnames) > 2 && family$name == "multinomial"
  if (type == "class") {
    if (!family$name %in% c("binomial", "multinomial")) {
      give_up("type = \"class\" is for binomial, multinomial and ordinal models.")
    }
    found <- if (classes) apply(z, c(1, 3), which.max) else (z > 0) + 1L
    found <- array(labels_of(object, task)[found], dim(found), if (classes) dimnames(z)[c(1, 3)] else dimnames(z))
    return(if (classes) found else simplified(found, object, task))
  }
  if (type == "response") {
    z[] <- family$mean(z)
  }
  if (classes) {
    dimnames(z)[[2]] <- labels_of(object, task)
    return(z)
  }
  simplified(z, object, task)
}

# Of the task of some rows, where tasks have classes of their own; else all.
labels_of <- function(object, task) {
  if (is.null(object$outputs$class)) {
    return(object$classnames)
  }
  t <- if (is.null(task)) 1 else task_codes(task[1], object$tasks)
  object$outputs$class[object$outputs$task == t]
}

# One output: a matrix, rows x values.
simplified <- function(z, object, task) {
  if (dim(z)[2] == 1) {
    return(array(z, dim(z)[c(1, 3)], dimnames(z)[c(1, 3)]))
  }
  dimnames(z)[[2]] <- object$tasks
  z
}

# Ordered classes: probabilities are differences of the logistic function at the thresholds.
ordered_answer <- function(object, z, at, type, task) {
  thresholds <- lapply(rows_of(object)$thresholds, mixed_columns, at = at)
  if (length(thresholds) > 1 && is.null(task)) {
    give_up("task is missing: probabilities of ordered classes are those of one task.")
  }
  codes <- if (is.null(task)) rep(1L, dim(z)[1]) else task_codes(task, object$tasks)
  classes <- object$classnames
  found <- array(0, c(dim(z)[1], length(classes), dim(z)[3]), list(dimnames(z)[[1]], classes, dimnames(z)[[3]]))
  for (k in seq_len(dim(z)[3])) {
    steps <- do.call(rbind, lapply(thresholds, function(own) own[, k]))[codes, , drop = FALSE]
    below <- cbind(0, stats::plogis(steps - z[, 1, k]), 1)
    found[, , k] <- below[, -1, drop = FALSE] - below[, -ncol(below), drop = FALSE]
  }
  if (type == "response") {
    return(found)
  }
  best <- apply(found, c(1, 3), which.max)
  array(classes[best], dim(best), dimnames(z)[c(1, 3)])
}
