#' Is everything in order?
#'
#' Looks at R, reticulate, Python, NumPy and tasksieve, and solves a problem whose answer is known in closed form.
#'
#' @return `TRUE` if all is well, invisibly. What is not is printed with its remedy.
#' @export
#' @examples
#' tasksieve_doctor()
tasksieve_doctor <- function() {
  cat("R", format(getRversion()), "with reticulate", format(utils::packageVersion("reticulate")), "\n")
  found <- tryCatch(helper(), error = identity)
  if (inherits(found, "error")) {
    cat("NOT WELL:", conditionMessage(found), "\n")
    return(invisible(FALSE))
  }
  health <- ask("health")
  cat("Python", health$python, "at", reticulate::py_config()$python, "\n")
  cat(sprintf("NumPy %s, SciPy %s, scikit-learn %s\n", health$numpy, health$scipy, health$sklearn))
  cat("tasksieve", health$tasksieve, if (health$compiled) "with its compiled kernels\n" else "on NumPy kernels\n")
  problems <- c(
    if (!health$compiled) {
      "The kernels are not compiled, and everything takes many times longer: install a C++17 compiler, then tasksieve again."
    },
    if (health$version_in_r != as.character(utils::packageVersion("tasksieve"))) {
      paste0(
        "The R package is version ", utils::packageVersion("tasksieve"), ", the Python package ", health$tasksieve,
        ": install both from one checkout."
      )
    },
    if (known_answer() > 1e-8) "A problem with a known answer was not solved: please report this."
  )
  if (is.null(problems)) {
    cat("A problem with a known answer was solved. All is well.\n")
  }
  for (problem in problems) {
    cat("NOT WELL:", problem, "\n")
  }
  invisible(is.null(problems))
}

# Orthogonal columns: the Lasso is soft thresholding.
known_answer <- function() {
  x <- cbind(c(1, 1, -1, -1), c(1, -1, 1, -1), c(1, -1, -1, 1))
  y <- c(3, 1, -1, -2)
  products <- drop(crossprod(x, y)) / 4
  fit <- tasksieve(x, y, lambda = 0.5, tol = 1e-12)
  max(abs(as.matrix(coef(fit))[-1, 1] - sign(products) * pmax(abs(products) - 0.5, 0)))
}
