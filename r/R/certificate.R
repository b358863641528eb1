#' The proof of a path, for others to check
#'
#' Proves every value of a path again from the data, has the independent verifier check it, and writes it to a file.
#'
#' @param object Of [tasksieve()] or [cv.tasksieve()], of this session.
#' @param x,y,task,weights,offset The data of the fit.
#' @param file The file to write (`.npz`); `NULL`: none. `tasksieve verify` and the library's `verify.py` check it.
#' @return A data frame, invisibly where a file was written: for each value `lambda`, `gap`, and the numbers of features that are proved to be zero
#'   in every solution, and in none; with the attribute `"proved"`, the verdict of the verifier.
#' @export
#' @examplesIf tasksieve_available()
#' x <- matrix(rnorm(300), 60)
#' y <- x[, 1] + rnorm(60)
#' certificate(tasksieve(x, y, nlambda = 5), x, y)
certificate <- function(object, x, y, task = NULL, weights = NULL, offset = NULL, file = NULL) {
  fit <- path_of(object)
  problem <- again(fit, x, y, task, weights, offset)
  found <- ask("certified", fit$path, problem$data$python, if (is.null(file)) NULL else path.expand(file))
  if (!found$proved) {
    give_up("the verifier does not accept the certificate: are x and y the data of the fit?")
  }
  shown <- data.frame(
    lambda = fit$lambda, gap = as.vector(found$gap), proven.zero = as.vector(found$proven_zero),
    proven.nonzero = as.vector(found$proven_nonzero)
  )
  attr(shown, "proved") <- TRUE
  if (is.null(file)) shown else invisible(shown)
}

# A path that has its Python object.
path_of <- function(object) {
  fit <- if (inherits(object, "cv.tasksieve")) object$tasksieve.fit else object
  if (!inherits(fit, "tasksieve")) {
    give_up("object must be of tasksieve() or cv.tasksieve(); it is ", class(object)[1], ".")
  }
  if (is.null(fit$path) || reticulate::py_is_null_xptr(fit$path)) {
    give_up("this object was saved and read again, and its Python part is gone: fit again.")
  }
  fit
}
