# With the same folds the figures are cv.glmnet's. A gap bounds the square of what coefficients are off: hence ours is
# asked to be far below what the figures are compared to.

expect_same_curve <- function(example, family, values, type = "default", part = 1e-5) {
  set.seed(2)
  fold <- sample(rep(1:5, length.out = nrow(example$x)))
  lambda <- glmnet::glmnet(example$x, example$y, family = family)$lambda[seq_len(values)]
  theirs <- glmnet::cv.glmnet(
    example$x, example$y,
    family = family, foldid = fold, lambda = lambda, type.measure = type, thresh = 1e-12
  )
  ours <- suppressWarnings(
    cv.tasksieve(example$x, example$y, family = family, foldid = fold, lambda = lambda, type.measure = type, tol = 1e-10)
  )
  expect_lt(max(abs(ours$cvm - theirs$cvm)) / max(theirs$cvm), part)
  expect_lt(max(abs(ours$cvsd - theirs$cvsd)) / max(theirs$cvsd), 20 * part)
  expect_equal(ours$lambda.min, theirs$lambda.min)
  expect_equal(ours$lambda.1se, theirs$lambda.1se)
  list(ours = ours, theirs = theirs)
}

test_that("held-out figures are those of cv.glmnet", {
  skip_without_python()
  curves <- expect_same_curve(example_of("QuickStartExample"), "gaussian", 50)
  new <- example_of("QuickStartExample")$x[1:5, ]
  expect_close(predict(curves$ours, new, s = "lambda.min"), predict(curves$theirs, new, s = "lambda.min"), 1e-3)
  expect_close(as.matrix(coef(curves$ours)), as.matrix(coef(curves$theirs)), 1e-3)
  expect_same_curve(example_of("BinomialExample"), "binomial", 30)
  expect_same_curve(example_of("BinomialExample"), "binomial", 30, "class")
  expect_same_curve(example_of("BinomialExample"), "binomial", 30, "auc")
  expect_same_curve(example_of("PoissonExample"), "poisson", 30)
  expect_same_curve(example_of("MultinomialExample"), "multinomial", 20)
  expect_same_curve(example_of("CoxExample"), "cox", 30)
  expect_same_curve(example_of("MultiGaussianExample"), "mgaussian", 30)
})

test_that("set.seed repeats the folds, and frames choose, too", {
  skip_without_python()
  set.seed(8)
  d <- data.frame(matrix(rnorm(60 * 4), 60), site = rep(c("a", "b"), 30))
  d$y <- d$X1 + rnorm(60)
  fold <- function() {
    set.seed(1)
    cv.tasksieve(d, "y", "site", nfolds = 3, nlambda = 10)
  }
  first <- fold()
  expect_equal(first$cvm, fold()$cvm)
  expect_setequal(as.vector(first$foldid), 1:3)
  expect_equal(dim(predict(first, d[1:4, ], s = "lambda.min")), c(4, 1))
  expect_output(print(first), "1se")
  expect_error(cv.tasksieve(d, "y", "site", fold_count = 3), "no such argument: fold_count")
})
