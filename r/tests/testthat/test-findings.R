test_that("answers of glmnet are graded as they deserve", {
  skip_without_python()
  example <- example_of("QuickStartExample")
  good <- glmnet::glmnet(example$x, example$y, thresh = 1e-14)
  s <- good$lambda[30]
  found <- grade(good, example$x, example$y, s = s)
  expect_s3_class(found, "tasksieve_grade")
  expect_lt(found$relative.gap, 1e-9)
  expect_output(print(found), "^glmnet at lambda = .* .dev.ratio 0.8.*, thresh 1e-14.: at most .* 0 wrong$")
  expect_equal(sum(found$selected), good$df[30])
  bad <- good
  bad$beta[1, ] <- bad$beta[1, ] * 1.01
  worse <- grade(bad, example$x, example$y, s = s)
  # above the optimum by what the objective says, computed here
  value <- function(fit) {
    beta <- coef(fit, s = s)[, 1]
    scale <- apply(example$x, 2, function(own) sqrt(mean((own - mean(own))^2)))
    mean((example$y - beta[1] - example$x %*% beta[-1])^2) / 2 + s * sum(abs(beta[-1]) * scale)
  }
  expect_equal(worse$excess, value(bad) - value(good), tolerance = 1e-4)
  expect_gte(worse$gap, worse$excess)
  expect_output(print(worse), "thresh 1e-14.: at most .*: fit again with a smaller thresh$")
  expect_error(grade(good, example$x, example$y, s = s * 1.01), "one of the lambda")
})

test_that("columns that are not penalised have no ridge either", {
  skip_without_python()
  # glmnet brings factors to a sum of as many as there are columns: the others are above 1
  for (case in list(
    list("QuickStartExample", "gaussian", 20), list("BinomialExample", "binomial", 30), list("PoissonExample", "poisson", 20),
    list("CoxExample", "cox", 30), list("MultiGaussianExample", "mgaussian", 20)
  )) {
    example <- example_of(case[[1]])
    free <- rep(c(0, 3), c(2, case[[3]] - 2))
    fit <- glmnet::glmnet(example$x, example$y, family = case[[2]], alpha = 0.3, penalty.factor = free, thresh = 1e-12)
    found <- grade(fit, example$x, example$y, s = fit$lambda[20])
    expect_lt(found$relative.gap, 1e-8)
    other <- grade(fit, example$x, example$y, s = fit$lambda[20], penalty.factor = rep(1, case[[3]]))
    expect_gt(other$relative.gap, 1e-4)
  }
  example <- example_of("MultinomialExample")
  fit <- glmnet::glmnet(example$x, example$y, family = "multinomial", penalty.factor = rep(c(0, 1), c(2, 28)), nlambda = 5)
  expect_error(grade(fit, example$x, example$y, s = fit$lambda[2]), "penalty.factor of 0")
})

test_that("all families of glmnet are graded, with what their calls say", {
  skip_without_python()
  for (case in list(
    list("BinomialExample", "binomial"), list("PoissonExample", "poisson"), list("CoxExample", "cox"),
    list("MultiGaussianExample", "mgaussian"), list("MultinomialExample", "multinomial")
  )) {
    example <- example_of(case[[1]])
    fit <- glmnet::glmnet(example$x, example$y, family = case[[2]], alpha = 0.6, thresh = 1e-12)
    expect_lt(grade(fit, example$x, example$y, s = fit$lambda[15])$relative.gap, 1e-5)
  }
  example <- example_of("QuickStartExample")
  inside <- function() {
    share <- 0.3
    some <- seq(0.5, 1.5, length.out = 100)
    cv <- glmnet::cv.glmnet(example$x, example$y, alpha = share, weights = some, nfolds = 3, thresh = 1e-12)
    grade(cv, example$x, example$y)
  }
  expect_lt(inside()$relative.gap, 1e-8)
})

test_that("our own answers are graded, certified, and written down", {
  skip_without_python()
  set.seed(9)
  x <- matrix(rnorm(60 * 8), 60)
  y <- x[, 1] + rnorm(60)
  site <- rep(c("a", "b"), 30)
  fit <- tasksieve(x, y, nlambda = 6)
  expect_lt(grade(fit, x, y, s = fit$lambda[3])$relative.gap, 1e-6)
  tasks <- tasksieve(x, y, site, nlambda = 6)
  file <- tempfile(fileext = ".npz")
  shown <- certificate(tasks, x, y, site, file = file)
  expect_true(attr(shown, "proved"))
  expect_true(file.exists(file))
  expect_equal(shown$lambda, tasks$lambda)
  expect_lte(max(shown$gap / tasks$null.objective), 2e-6)
  expect_error(grade(tasks, x, y, s = fit$lambda[3]), "one task")
  table <- as.data.frame(tasks)
  expect_equal(sum(table$feature == "V1" & table$task == "a"), sum(coef(tasks)$a["V1", ] != 0))
  expect_equal(nrow(summary(tasks)), 6)
})

test_that("stable features are found, and bounded", {
  skip_without_python()
  set.seed(10)
  x <- matrix(rnorm(120 * 20), 120)
  found <- stability(x, x[, 1] - x[, 2] + 0.5 * rnorm(120), rep(c("a", "b"), 60), n.pairs = 10, pfer = 1)
  expect_equal(found$selected, c("V1", "V2"))
  expect_lte(found$pfer, 1)
  expect_output(print(found), "2 of 20 features are stable")
})

test_that("pictures are drawn", {
  skip_without_python()
  set.seed(11)
  x <- matrix(rnorm(60 * 8), 60)
  y <- x[, 1] + rnorm(60)
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  on.exit(grDevices::dev.off())
  expect_s3_class(plot(tasksieve(x, y, nlambda = 5), label = TRUE), "tasksieve")
  expect_s3_class(plot(tasksieve(x, y, rep(1:2, 30), nlambda = 5), which = "rows", xvar = "norm"), "tasksieve")
  expect_s3_class(plot(cv.tasksieve(x, y, nfolds = 3, nlambda = 5)), "cv.tasksieve")
})

test_that("a report is a page", {
  skip_without_python()
  skip_if_not(reticulate::py_module_available("jinja2"), "jinja2 is not there")
  set.seed(12)
  x <- matrix(rnorm(60 * 4), 60, dimnames = list(NULL, c("age", "dose", "weight", "size")))
  y <- x[, 1] + rnorm(60)
  file <- tempfile(fileext = ".html")
  report(tasksieve(x, y, nlambda = 5), file, x, y, s = 0.1)
  page <- paste(readLines(file, warn = FALSE), collapse = "\n")
  expect_match(page, "<!doctype html>", fixed = TRUE)
  expect_match(page, "age", fixed = TRUE)
})

test_that("the doctor finds all well", {
  skip_without_python()
  expect_output(expect_true(tasksieve_doctor()), "All is well")
})
