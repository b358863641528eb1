#' Coefficients of a path
#'
#' @param object Of [tasksieve()].
#' @param s Values of lambda; by default all of the path. Between values of the path coefficients are taken linearly, as glmnet does; outside it
#'   those of its ends. For the exact solution fit with that `lambda`.
#' @param ... Not used.
#' @return As of glmnet: a sparse matrix with a row `(Intercept)` (none in Cox models) and a column for each value; several tasks or
#'   classes: a list of such, by task, by class, or by task and then by class. Ordinal models: with rows for the thresholds, as
#'   `MASS::polr` names them, below the coefficients.
#' @export
coef.tasksieve <- function(object, s = NULL, ...) {
  refuse_others(...)
  at <- at_values(object, s)
  rows <- rows_of(object)
  items <- lapply(seq_along(rows$beta), function(r) {
    found <- mixed_columns(rows$beta[[r]], at)
    if (!is.null(rows$thresholds)) {
      found <- rbind(found, as(mixed_columns(rows$thresholds[[r]], at), "sparseMatrix"))
    } else if (!is.null(object$a0)) {
      constants <- mixed_columns(rows$a0[r, , drop = FALSE], at)
      rownames(constants) <- "(Intercept)"
      found <- rbind(as(constants, "sparseMatrix"), found)
    }
    colnames(found) <- at$names
    as(as(as(found, "dMatrix"), "generalMatrix"), "CsparseMatrix")
  })
  shaped(items, object$outputs, object$tasks)
}

#' Coefficients as a table
#'
#' @param x Of [tasksieve()].
#' @param row.names,optional Not used.
#' @param s Values of lambda; by default all of the path.
#' @param ... Not used.
#' @return A data frame with a row for each coefficient that is not zero: `lambda`, `task`, `class` (of several), `feature`, `coefficient`.
#' @method as.data.frame tasksieve
#' @export
as.data.frame.tasksieve <- function(x, row.names = NULL, optional = FALSE, s = NULL, ...) {
  at <- at_values(x, s)
  rows <- rows_of(x)
  parts <- lapply(seq_along(rows$beta), function(r) {
    found <- Matrix::summary(mixed_columns(rows$beta[[r]], at))
    part <- data.frame(lambda = at$s[found$j], task = rep(x$tasks[x$outputs$task[r]], nrow(found)))
    if (!is.null(x$outputs$class)) part$class <- rep(x$outputs$class[r], nrow(found))
    part$feature <- rownames(rows$beta[[r]])[found$i]
    part$coefficient <- found$x
    part
  })
  found <- do.call(rbind, parts)
  found <- found[order(-found$lambda), , drop = FALSE]
  rownames(found) <- NULL
  found
}
