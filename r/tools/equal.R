# The table of the documentation: tasksieve() with one task beside glmnet and MASS::polr, family by family.
#
#   Rscript r/tools/equal.R > table.md
#
# For each path the largest difference of a coefficient beside the largest coefficient, how far tasksieve's answers are
# above the optimum at most (proved, relative to the objective at zero), and how far glmnet's, graded at three values.

suppressMessages(library(tasksieve))
for (package in c("glmnet", "MASS", "survival")) {
  if (!requireNamespace(package, quietly = TRUE)) stop("this script needs ", package)
}

example <- function(name) {
  utils::data(list = name, package = "glmnet", envir = environment())
  get(name)
}

coefficients_of <- function(fit) {
  found <- coef(fit)
  if (is.list(found)) do.call(rbind, lapply(found, as.matrix)) else as.matrix(found)
}

line <- function(what, values, largest, difference, ours, theirs) {
  cat(sprintf("| %s | %d | %.3g | %.1e | %.0e | %.0e |\n", what, values, largest, difference, ours, theirs))
}

path <- function(what, data, family, ...) {
  theirs <- glmnet::glmnet(data$x, data$y, family = family, thresh = 1e-14, maxit = 1e7, ...)
  ours <- suppressWarnings(tasksieve(data$x, data$y, family = family, lambda = theirs$lambda, tol = 1e-12, ...))
  a <- coefficients_of(ours)
  b <- coefficients_of(theirs)
  at <- theirs$lambda[round(length(theirs$lambda) * c(0.3, 0.6, 1))]
  gaps <- vapply(at, function(s) grade(theirs, data$x, data$y, s = s, alpha = list(..., alpha = 1)$alpha)$relative.gap, 1)
  line(what, ncol(a), max(abs(b)), max(abs(a - b)), max(ours$relative.gap), max(gaps))
}

cat("| family | values | largest coefficient | largest difference | gap of tasksieve | gap of glmnet |\n|---|--:|--:|--:|--:|--:|\n")
for (alpha in c(1, 0.5)) {
  named <- function(family) sprintf("%s, alpha = %g", family, alpha)
  path(named("gaussian"), example("QuickStartExample"), "gaussian", alpha = alpha)
  path(named("binomial"), example("BinomialExample"), "binomial", alpha = alpha)
  path(named("poisson"), example("PoissonExample"), "poisson", alpha = alpha)
  path(named("multinomial"), example("MultinomialExample"), "multinomial", alpha = alpha)
  path(named("multinomial, grouped"), example("MultinomialExample"), "multinomial", alpha = alpha, type.multinomial = "grouped")
  path(named("cox"), example("CoxExample"), "cox", alpha = alpha)
  path(named("mgaussian"), example("MultiGaussianExample"), "mgaussian", alpha = alpha)
}

d <- MASS::housing
known <- MASS::polr(Sat ~ Infl + Type + Cont, d, weights = d$Freq, control = list(reltol = 1e-15, maxit = 1000))
ours <- suppressWarnings(tasksieve(
  Sat ~ Infl + Type + Cont, d,
  weights = d$Freq, family = "ordinal", lambda = 1e-10, tol = 1e-13
))
theirs <- c(coef(known), known$zeta)
difference <- max(abs(coef(ours)[names(theirs), 1] - theirs))
cat(sprintf(
  "| ordinal, beside polr | 1 | %.3g | %.1e | %.0e | not graded |\n", max(abs(theirs)), difference, max(ours$relative.gap)
))
