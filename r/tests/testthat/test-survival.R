# Data of survival: lung and veteran, against glmnet and survival.

lung_rows <- function() {
  d <- stats::na.omit(survival::lung[c("time", "status", "age", "sex", "ph.ecog", "ph.karno", "wt.loss")])
  list(x = as.matrix(d[-(1:2)]), y = survival::Surv(d$time, d$status))
}

test_that("lung: the path is glmnet's, the curves are survival's", {
  skip_without_python()
  skip_if_not_installed("glmnet")
  lung <- lung_rows()
  fits <- both(lung$x, lung$y, "cox")
  # Where times are tied glmnet is a little above the optimum of Breslow's likelihood (grade() proves it); apart they agree.
  expect_close(all_coefficients(fits$ours), all_coefficients(fits$theirs), 1e-3)
  apart <- both(lung$x, survival::Surv(lung$y[, 1] + (1:nrow(lung$x)) / 500, lung$y[, 2]), "cox", values = 30)
  expect_close(all_coefficients(apart$ours), all_coefficients(apart$theirs)[, apart$kept], 1e-5)
  s <- fits$s[10]
  beta <- as.vector(coef(fits$ours, s = s))
  known <- survival::coxph(
    lung$y ~ lung$x,
    ties = "breslow", init = beta, control = survival::coxph.control(iter.max = 0)
  )
  new <- lung$x[c(3, 50), ]
  # the baseline of coxph at its own means, moved to each row
  hazard <- survival::basehaz(known, centered = FALSE)
  times <- c(100, 365, 700)
  at <- vapply(times, function(t) max(c(0, hazard$hazard[hazard$time <= t])), 1)
  expected <- exp(-outer(exp(drop(new %*% beta)), at))
  ours <- predict(fits$ours, new, s = s, type = "survival", times = times, x = lung$x, y = lung$y)
  expect_equal(unclass(ours), expected, tolerance = 1e-5, ignore_attr = TRUE)
  expect_equal(attr(ours, "times"), times)
})

test_that("veteran: strata and entry times, and Efron's ties without a penalty", {
  skip_without_python()
  skip_if_not_installed("glmnet")
  d <- survival::veteran
  x <- stats::model.matrix(~ trt + karno + diagtime + age + prior, d)[, -1]
  plain <- survival::Surv(d$time, d$status)
  late <- survival::Surv(pmin(d$diagtime, d$time / 2), d$time, d$status)
  layers <- glmnet::stratifySurv(plain, d$celltype)
  strata <- survival::strata # coxph knows it by this name only
  free <- function(y, ties) {
    found <- suppressWarnings(tasksieve(x, y, family = "cox", ties = ties, lambda = 1e-9, tol = 1e-12))
    as.vector(coef(found))
  }
  expect_equal(free(plain, "efron"), unname(coef(survival::coxph(plain ~ x))), tolerance = 1e-4)
  expect_equal(free(plain, "breslow"), unname(coef(survival::coxph(plain ~ x, ties = "breslow"))), tolerance = 1e-4)
  expect_equal(free(late, "breslow"), unname(coef(survival::coxph(late ~ x, ties = "breslow"))), tolerance = 1e-4)
  known <- survival::coxph(plain ~ x + strata(d$celltype), ties = "breslow")
  expect_equal(free(layers, "breslow"), unname(coef(known)), tolerance = 1e-4)
  # glmnet's path for these is another program: its answers are near the optimum, and above ours
  for (y in list(layers, late)) {
    theirs <- suppressWarnings(glmnet::glmnet(x, y, family = "cox", nlambda = 10)) # it did not converge, it says
    found <- grade(theirs, x, y, s = theirs$lambda[5])
    expect_gt(found$excess, 0)
    expect_lt(found$relative.gap, 1e-3)
  }
})

test_that("times that are no Surv object are refused with words", {
  skip_without_python()
  expect_error(tasksieve(matrix(rnorm(20), 10), 1:10, family = "cox"), "Surv object")
})
