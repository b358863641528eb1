# glmnet's answer for survival with ties, by the unit of time: is it stationary for the partial likelihood of coxph?
#
#     Rscript audit/time_units.R
#
# At an optimum the derivative of the mean log partial likelihood is +-lambda for every coefficient that is not zero.
suppressMessages({library(glmnet); library(survival)})
lung <- survival::lung[complete.cases(survival::lung), ]
X <- scale(as.matrix(lung[, c("age", "sex", "ph.ecog", "ph.karno", "pat.karno", "meal.cal", "wt.loss")]))
X <- X * sqrt(nrow(X) / (nrow(X) - 1))  # deviations that divide by n, as glmnet's own
event <- lung$status == 2
glmnet.control(fdev = 0, devmax = 1)
for (unit in c(days = 1, weeks = 7, years = 365.25)) {
  y <- Surv(lung$time / unit, event)
  fit <- glmnet(X, y, family = "cox", thresh = 1e-14, maxit = 1e7)
  at <- which.min(abs(fit$lambda / fit$lambda[1] - 0.1))
  beta <- as.numeric(fit$beta[, at])
  slopes <- colSums(residuals(coxph(y ~ X, init = beta, iter = 0, ties = "breslow"), type = "score")) / nrow(X)
  off <- max(abs(abs(slopes[beta != 0]) / fit$lambda[at] - 1))
  cat(sprintf("time / %g: lambda %.8g, derivatives are off by %.1e of it\n", unit, fit$lambda[at], off))
}
