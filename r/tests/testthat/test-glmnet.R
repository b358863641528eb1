# One task is the problem of glmnet: the same coefficients along the path, the same predictions.

expect_same_path <- function(example, family, part = 1e-5, types = c("link", "response"), ...) {
  fits <- both(example$x, example$y, family, ...)
  theirs <- all_coefficients(fits$theirs)[, fits$kept]
  expect_close(all_coefficients(fits$ours), theirs, part)
  expect_lt(max(fits$ours$relative.gap), 1e-8)
  expect_same_deviance(fits)
  s <- c(fits$s[10], mean(fits$s[12:13])) # on the path, and between two values
  new <- example$x[1:7, ]
  for (type in types) {
    ours <- predict(fits$ours, new, s = s, type = type)
    expected <- predict(fits$theirs, new, s = s, type = type)
    expect_close(unname(ours), unname(expected), 10 * part)
    expect_equal(dim(ours), dim(expected))
  }
  fits
}

expect_same_deviance <- function(fits) {
  expect_equal(fits$ours$nulldev, fits$theirs$nulldev, tolerance = 1e-10)
  expect_lt(max(abs(fits$ours$dev.ratio - fits$theirs$dev.ratio)), 1e-5)
  expect_lt(max(abs(deviance(fits$ours) - deviance(fits$theirs))) / fits$theirs$nulldev, 1e-5)
}

test_that("gaussian paths are glmnet's", {
  skip_without_python()
  example <- example_of("QuickStartExample")
  for (alpha in c(1, 0.4)) {
    expect_same_path(example, "gaussian", alpha = alpha)
  }
})

test_that("binomial paths are glmnet's, and their classes", {
  skip_without_python()
  example <- example_of("BinomialExample")
  for (alpha in c(1, 0.4)) {
    # at the end the classes are separated: 1e-10 of the objective is 1e-5 of a coefficient
    fits <- expect_same_path(example, "binomial", 2e-5, alpha = alpha)
    ours <- predict(fits$ours, example$x, s = fits$s[c(5, 20)], type = "class")
    expect_equal(unname(ours), unname(predict(fits$theirs, example$x, s = fits$s[c(5, 20)], type = "class")))
  }
})

test_that("poisson paths are glmnet's", {
  skip_without_python()
  for (alpha in c(1, 0.4)) {
    expect_same_path(example_of("PoissonExample"), "poisson", alpha = alpha)
  }
})

test_that("multinomial paths are glmnet's, in both types", {
  skip_without_python()
  example <- example_of("MultinomialExample")
  for (type in c("ungrouped", "grouped")) {
    fits <- expect_same_path(example, "multinomial", type.multinomial = type, alpha = if (type == "grouped") 0.5 else 1)
    ours <- predict(fits$ours, example$x, s = fits$s[20], type = "class")
    expect_equal(c(ours), c(predict(fits$theirs, example$x, s = fits$s[20], type = "class")))
    expect_equal(names(coef(fits$ours)), names(coef(fits$theirs)))
  }
})

test_that("cox paths are glmnet's", {
  skip_without_python()
  for (alpha in c(1, 0.4)) {
    expect_same_path(example_of("CoxExample"), "cox", alpha = alpha)
  }
})

test_that("mgaussian paths are glmnet's", {
  skip_without_python()
  for (alpha in c(1, 0.4)) {
    expect_same_path(example_of("MultiGaussianExample"), "mgaussian", alpha = alpha)
  }
})

test_that("weights, offsets, factors, limits and scaling mean what they mean in glmnet", {
  skip_without_python()
  example <- example_of("QuickStartExample")
  x <- example$x
  y <- drop(example$y)
  set.seed(3)
  weights <- runif(100)
  offset <- rnorm(100)
  same <- function(fits, part = 1e-5) {
    expect_close(all_coefficients(fits$ours), all_coefficients(fits$theirs)[, fits$kept], part)
    expect_same_deviance(fits)
  }
  same(both(x, y, "gaussian", weights = weights, offset = offset, alpha = 0.5))
  same(both(x, exp(y / 20), "poisson", weights = weights, offset = offset / 5))
  same(both(x, y, "gaussian", penalty.factor = c(0, 0, runif(18))))
  same(both(x, y, "gaussian", penalty.factor = rep(c(0, 3), c(2, 18)), alpha = 0.5))
  same(both(x, exp(y / 20), "poisson", penalty.factor = c(0, rep(1, 19)), alpha = 0.5))
  same(both(x, y, "gaussian", lower.limits = 0))
  same(both(x, y, "gaussian", standardize = FALSE, alpha = 0.5))
  same(both(x, y, "gaussian", standardize = FALSE, intercept = FALSE, alpha = 0.5))
  fits <- both(x, y, "gaussian", offset = offset)
  ours <- predict(fits$ours, x[1:5, ], s = 0.1, newoffset = offset[1:5])
  expect_close(unname(ours), unname(predict(fits$theirs, x[1:5, ], s = 0.1, newoffset = offset[1:5])))
  expect_error(predict(fits$ours, x[1:5, ], s = 0.1), "newoffset")
})

test_that("the deviance of several tasks is the sum of theirs", {
  skip_without_python()
  set.seed(4)
  x <- matrix(rnorm(90 * 6), 90)
  task <- rep(c("a", "b"), c(30, 60))
  y <- x[, 1] + rnorm(90)
  weights <- runif(90)
  one <- function(fit, k) {
    left <- y - predict(fit, x, s = fit$lambda[k], task = task)
    sum(weights * left^2)
  }
  null <- sum(vapply(split(seq_along(y), task), function(own) sum(weights[own] * (y[own] - weighted.mean(y[own], weights[own]))^2), 1))
  for (penalty in c("l21", "l11", "linf", "sparse_group", "dirty", "owl")) {
    fit <- tasksieve(x, y, task, penalty = penalty, weights = weights, alpha = 0.7, task.graph = "chain", nlambda = 5)
    expect_equal(fit$nulldev, null, tolerance = 1e-10)
    expect_equal(deviance(fit), vapply(1:5, one, 1, fit = fit), tolerance = 1e-8)
  }
  cv <- cv.tasksieve(x, y, task, weights = weights, nlambda = 5, nfolds = 3)
  expect_equal(deviance(cv$tasksieve.fit), vapply(1:5, one, 1, fit = cv$tasksieve.fit), tolerance = 1e-8)
  y[c(3, 50)] <- NA
  columns <- tasksieve(x, cbind(y, rev(y)), family = "mgaussian", nlambda = 3)
  shown <- columns$a0[, 1] - cbind(colMeans(cbind(y, rev(y)), na.rm = TRUE))
  expect_lt(max(abs(shown)), 1e-8)
  expect_equal(columns$nulldev, 2 * sum((y - mean(y, na.rm = TRUE))^2, na.rm = TRUE), tolerance = 1e-8)
})

test_that("the values of lambda are glmnet's", {
  skip_without_python()
  wide <- matrix(rnorm(20 * 30), 20)
  for (case in list(list(x = example_of("QuickStartExample")$x, y = example_of("QuickStartExample")$y), list(x = wide, y = rnorm(20)))) {
    for (alpha in c(1, 0.5)) {
      theirs <- glmnet::glmnet(case$x, case$y, alpha = alpha)$lambda
      ours <- tasksieve(case$x, case$y, alpha = alpha, tol = 1e-3)$lambda
      expect_length(ours, 100)
      expect_equal(ours[seq_along(theirs)], theirs, tolerance = 1e-7)
    }
  }
})

test_that("columns in use, factors and sparse matrices", {
  skip_without_python()
  example <- example_of("QuickStartExample")
  fits <- both(example$x, example$y, "gaussian")
  s <- fits$s[c(5, 30)]
  expect_equal(unname(predict(fits$ours, s = s, type = "nonzero")), lapply(unname(predict(fits$theirs, s = s, type = "nonzero")), identity))
  thin <- example$x * (abs(example$x) > 1)
  sparse <- Matrix::Matrix(thin, sparse = TRUE)
  dense <- tasksieve(thin, example$y, nlambda = 20, tol = 1e-10)
  ours <- tasksieve(sparse, example$y, nlambda = 20, tol = 1e-10)
  expect_close(all_coefficients(ours), all_coefficients(dense))
  expect_close(predict(ours, sparse[1:5, ], s = 0.1), predict(dense, thin[1:5, ], s = 0.1))
  label <- factor(ifelse(drop(example$y) > 0, "yes", "no"), levels = c("yes", "no"))
  fits <- both(example$x, label, "binomial", values = 30)
  expect_close(all_coefficients(fits$ours), all_coefficients(fits$theirs)[, fits$kept])
  expect_equal(
    c(predict(fits$ours, example$x, s = 0.05, type = "class")),
    c(predict(fits$theirs, example$x, s = 0.05, type = "class"))
  )
})
