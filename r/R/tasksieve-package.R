#' Sparse multi-task learning whose every answer carries a proof
#'
#' Several related data sets (hospitals, tissues, schools, sites), each with a matrix of its own, and one question: which
#' features matter for all of them? [tasksieve()] follows the regularisation path, [cv.tasksieve()] chooses a value,
#' [stability()] asks what would be found again, [grade()] says how good an answer of glmnet is. Every value comes with
#' a bound on its distance to the optimum, which [certificate()] writes to a file that others can check.
#'
#' The work is done by the Python package tasksieve, called through reticulate. [install_tasksieve()] makes an
#' environment for it, [tasksieve_doctor()] says whether all is well.
#'
#' @name tasksieve-package
#' @keywords internal
#' @importFrom Matrix drop0
#' @importFrom methods new is as
#' @importFrom stats approx coef deviance model.frame model.matrix predict reformulate setNames terms
NULL
