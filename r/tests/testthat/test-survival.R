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
  expect_close(all_coefficients(fits$ours), all_coefficients(fits$theirs))
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
  strata <- glmnet::stratifySurv(survival::Surv(d$time, d$status), d$celltype)
  fits <- both(x, strata, "cox")
  expect_close(all_coefficients(fits$ours), all_coefficients(fits$theirs)[, fits$kept])
  late <- survival::Surv(pmin(d$diagtime, d$time / 2), d$time, d$status)
  fits <- both(x, late, "cox", values = 30)
  expect_close(all_coefficients(fits$ours), all_coefficients(fits$theirs)[, fits$kept])
  free <- suppressWarnings(tasksieve(x, survival::Surv(d$time, d$status), family = "cox", ties = "efron", lambda = 1e-9, tol = 1e-12))
  known <- survival::coxph(survival::Surv(time, status) ~ trt + karno + diagtime + age + prior, d)
  expect_equal(as.vector(coef(free)), unname(coef(known)), tolerance = 1e-4)
})

test_that("times that are no Surv object are refused with words", {
  skip_without_python()
  expect_error(tasksieve(matrix(rnorm(20), 10), 1:10, family = "cox"), "Surv object")
})
