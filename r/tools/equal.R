# The table of the documentation: tasksieve() with one task beside glmnet and MASS::polr, family by family.
#
#   Rscript r/tools/equal.R > table.md
#
# For each path, over all of its values: the largest difference of a coefficient beside the largest coefficient, the largest
# differences of predictions (type = "response", relative to the largest; and classes that differ) and of dev.ratio, how far tasksieve's
# answers are above the optimum at most (proved, relative to the objective at zero), and how far glmnet's, as grade() proves.

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

line <- function(what, values, largest, ...) {
  cat("|", paste(c(what, values, sprintf("%.3g", largest), vapply(list(...), shown, "")), collapse = " | "), "|\n")
}

shown <- function(number) if (is.character(number)) number else sprintf("%.0e", number)

apart <- function(ours, theirs) max(abs(ours - theirs))

# Of all rows at all values: means relative to the largest, and classes that are not the same.
predictions_apart <- function(ours, theirs, x, family) {
  of <- function(type) list(predict(ours, x, type = type), predict(theirs, x, type = type))
  means <- of("response")
  found <- sprintf("%.0e", apart(means[[1]], means[[2]]) / max(abs(means[[2]])))
  if (!family %in% c("binomial", "multinomial")) {
    return(found)
  }
  classes <- of("class")
  sprintf("%s, %d of %d classes", found, sum(classes[[1]] != classes[[2]]), length(classes[[1]]))
}

path <- function(what, data, family, ...) {
  theirs <- glmnet::glmnet(data$x, data$y, family = family, thresh = 1e-14, maxit = 1e7, ...)
  ours <- suppressWarnings(tasksieve(data$x, data$y, family = family, lambda = theirs$lambda, tol = 1e-12, ...))
  a <- coefficients_of(ours)
  b <- coefficients_of(theirs)
  gaps <- vapply(theirs$lambda, function(s) grade(theirs, data$x, data$y, s = s, alpha = list(..., alpha = 1)$alpha)$relative.gap, 1)
  line(
    what, ncol(a), max(abs(b)), apart(a, b), predictions_apart(ours, theirs, data$x, family),
    apart(ours$dev.ratio, theirs$dev.ratio), max(ours$relative.gap), max(gaps)
  )
}

cat("| family | values | largest coefficient | largest difference | of predictions | of dev.ratio | gap of tasksieve | gap of glmnet |\n")
cat("|---|--:|--:|--:|--:|--:|--:|--:|\n")
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
probabilities <- apart(
  drop(predict(ours, d[1:20, ], type = "response")), predict(known, d[1:20, ], type = "probs")
)
line(
  "ordinal, beside polr", 1, max(abs(theirs)), apart(coef(ours)[names(theirs), 1], theirs), probabilities,
  abs(deviance(ours) / deviance(known) - 1), max(ours$relative.gap), "not graded"
)
