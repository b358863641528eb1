skip_without_python <- function() {
  skip_if_not(tasksieve_available(), "the Python package tasksieve is not there")
}

# The examples of glmnet's own documentation.
example_of <- function(name) {
  skip_if_not_installed("glmnet")
  place <- new.env()
  utils::data(list = name, package = "glmnet", envir = place)
  place[[name]]
}

# All coefficients of a path, one below the other.
all_coefficients <- function(fit) {
  found <- coef(fit)
  if (is.list(found)) do.call(rbind, lapply(found, as.matrix)) else as.matrix(found)
}

# Equal to so much of the largest.
expect_close <- function(ours, theirs, part = 1e-5) {
  expect_equal(dim(ours), dim(theirs))
  expect_lt(max(abs(ours - theirs)) / max(abs(theirs)), part)
}

# glmnet's fit, as accurate as it gets, and ours at the same values.
both <- function(x, y, family, ..., values = Inf) {
  theirs <- glmnet::glmnet(x, y, family = family, thresh = 1e-14, maxit = 1e7, ...)
  lambda <- theirs$lambda[seq_len(min(values, length(theirs$lambda)))]
  # where double precision resolves no gap of 1e-11 a warning says so
  ours <- suppressWarnings(tasksieve(x, y, family = family, lambda = lambda, tol = 1e-11, ...))
  list(ours = ours, theirs = theirs, s = lambda, kept = seq_along(lambda))
}
