#' Print and summarise a path
#'
#' `print` shows, for each value, the number of features selected, the part of the deviance that is explained (in per cent, as
#' glmnet) and the certificate: how far the objective is above the optimum at most, relative to that of the empty model. `summary` also shows the objective and how the value ended.
#'
#' @param x,object Of [tasksieve()].
#' @param digits Significant digits.
#' @param s Values of the path nearest to these are shown; by default all.
#' @param ... Not used.
#' @return `print` its argument, invisibly; `summary` a data frame with `lambda`, `df`, `dev.ratio`, `objective`, `gap` (a proved bound on objective minus optimum),
#'   `relative.gap`, `converged` and `status`.
#' @method print tasksieve
#' @export
print.tasksieve <- function(x, digits = 4, ...) {
  cat("\nCall: ", deparse1(x$call), "\n\n")
  cat(described(x), "\n\n")
  print(data.frame(Df = x$df, `%Dev` = round(100 * x$dev.ratio, 2), Lambda = signif(x$lambda, digits), Gap = signif(x$relative.gap, 2), check.names = FALSE))
  invisible(x)
}

described <- function(x) {
  tasks <- if (length(x$tasks) > 1) sprintf("%d tasks, ", length(x$tasks)) else ""
  paste0(
    x$family, ", ", tasks, x$nobs, " rows, ", x$dim[1], " features, ", length(x$lambda), " values; ",
    if (all(x$converged)) "all" else sum(x$converged), " proved to ", signif(x$arguments$tol, 2),
    " of the objective at zero"
  )
}

#' @rdname print.tasksieve
#' @method summary tasksieve
#' @export
summary.tasksieve <- function(object, s = NULL, ...) {
  refuse_others(...)
  k <- if (is.null(s)) seq_along(object$lambda) else vapply(s, function(one) which.min(abs(object$lambda - one)), 1L)
  found <- data.frame(
    lambda = object$lambda, df = object$df, dev.ratio = object$dev.ratio, objective = object$objective,
    gap = object$gap, relative.gap = object$relative.gap, converged = object$converged, status = object$status
  )[k, ]
  structure(found, class = c("summary.tasksieve", "data.frame"), words = described(object))
}

#' @method print summary.tasksieve
#' @export
print.summary.tasksieve <- function(x, ...) {
  cat(attr(x, "words"), "\n")
  cat("objective - optimum <= gap at every value: proved, whatever computed it\n\n")
  print(structure(x, class = "data.frame", words = NULL), ...)
  invisible(x)
}

#' The deviance of each value
#'
#' @param object Of [tasksieve()].
#' @param ... Not used.
#' @return `(1 - dev.ratio) * nulldev`, as of glmnet: a number for each value of lambda. Of huber and quantile models twice the loss.
#' @export
deviance.tasksieve <- function(object, ...) {
  refuse_others(...)
  (1 - object$dev.ratio) * object$nulldev
}
