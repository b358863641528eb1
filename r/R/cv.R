#' Choose lambda by cross-validation
#'
#' The habits of `cv.glmnet()`, for several tasks: folds are drawn within tasks (within classes, and balanced by event), all folds follow their paths together,
#' and every value of every fold is certified.
#'
#' Folds are drawn by the library from a seed that comes from R's generator, so that `set.seed()` repeats them. Held-out figures are those
#' of cv.glmnet: the mean squared error, the deviance, for Cox models the cross-validated partial likelihood
#' (`grouped = TRUE`); with several tasks every task counts by its rows. With `alpha < 1` and `family = "gaussian"` the standard deviation of `y` that
#' scales the ridge is that of all rows, in cv.glmnet that of the rows of each fold.
#'
#' @inheritParams tasksieve
#' @param type.measure `"default"`: mean squared error, or deviance. `"class"`: misclassification; `"auc"` (two classes); `"C"`: concordance (Cox).
#' @param nfolds Number of folds.
#' @param foldid The fold of each row, from 1; a list for a list.
#' @param fold.tol The largest relative gap in folds.
#' @param ... Arguments of [tasksieve()]; with a formula also those of the default method.
#' @return An object of class `"cv.tasksieve"`: `lambda`, `cvm`, `cvsd`, `cvup`, `cvlo`, `nzero`, `lambda.min`, `lambda.1se`, `index`, `name`, `foldid`, `call`,
#'   and the path on all rows, `tasksieve.fit`. [coef()], [predict()] and [plot()] take it, with `s = "lambda.1se"` (the default),
#'   `"lambda.min"`, or numbers.
#' @export
#' @examplesIf tasksieve_available()
#' set.seed(1)
#' x <- matrix(rnorm(80 * 10), 80)
#' y <- x[, 1] + rnorm(80)
#' cv <- cv.tasksieve(x, y, task = rep(c("a", "b"), 40), nfolds = 5)
#' cv
#' coef(cv, s = "lambda.min")$a
cv.tasksieve <- function(x, ...) {
  UseMethod("cv.tasksieve")
}

#' @rdname cv.tasksieve
#' @export
cv.tasksieve.default <- function(x, y, task = NULL, family = "gaussian", lambda = NULL, nlambda = 100,
                                 lambda.min.ratio = NULL, weights = NULL, offset = NULL,
                                 type.measure = c("default", "deviance", "mse", "class", "auc", "C"), nfolds = 10,
                                 foldid = NULL, tol = 1e-6, fold.tol = tol, ...) {
  refuse_unknown(c("threads", model_arguments), ...)
  problem <- read_problem(x, y, task, family, weights, offset, tol = tol, ...)
  measure <- measure_of(match.arg(type.measure), problem$family$name)
  grid <- read_grid(lambda, nlambda, lambda.min.ratio, problem$data, problem$model$unit)
  if (is.null(foldid)) {
    about <- list(cv = as.integer(nfolds), random_state = sample.int(.Machine$integer.max, 1))
  } else {
    about <- list(fold = as_array(as.integer(read_folds(foldid, problem$data))))
  }
  about$scoring <- measure$scoring
  about$fold_tol <- fold.tol
  found <- ask("cross_validated", problem$model$loss, problem$model$options, problem$data$python, grid, about)
  call <- called(match.call(), "cv.tasksieve")
  as_cv(found, as_fit(found, problem, call), measure, problem, foldid, call)
}

#' @rdname cv.tasksieve
#' @export
cv.tasksieve.formula <- function(x, data, task = NULL, weights = NULL, offset = NULL, na.action = stats::na.omit, ...) {
  call <- called(match.call(), "cv.tasksieve")
  rows <- rows_of_formula(x, data, task, weights, offset, na.action)
  cv <- cv.tasksieve.default(rows$x, rows$y, rows$task, weights = rows$weights, offset = rows$offset, ...)
  cv$tasksieve.fit <- with_frame(cv$tasksieve.fit, rows, call)
  cv$call <- call
  cv
}

#' @rdname cv.tasksieve
#' @export
cv.tasksieve.data.frame <- function(x, y, task = NULL, ...) {
  cv <- cv.tasksieve.formula(formula_of(x, y), x, task = task, ...)
  cv$call <- called(match.call(), "cv.tasksieve")
  cv
}

model_arguments <- c(
  "penalty", "alpha", "standardize", "intercept", "penalty.factor", "lower.limits", "type.multinomial", "ties", "tol", "maxit",
  "task.weights", "task.graph", "graph.strength"
)

refuse_unknown <- function(known, ...) {
  given <- list(...)
  others <- setdiff(if (length(given)) names(given), known)
  if (length(given) && (is.null(names(given)) || length(others))) {
    give_up("there is no such argument: ", paste(others, collapse = ", "), ".")
  }
}

# What is scored in Python, by what factor it is the figure of glmnet, and whether more is better.
measure_of <- function(type, family) {
  if (type == "mse" && !family %in% c("gaussian", "mgaussian")) give_up("type.measure = \"mse\" is for gaussian models.")
  if (type == "class" && !family %in% c("binomial", "multinomial", "ordinal")) give_up("type.measure = \"class\" is for classes.")
  if (type == "auc" && family != "binomial") give_up("type.measure = \"auc\" is for binomial models.")
  if (type == "C" && family != "cox") give_up("type.measure = \"C\" is for Cox models.")
  if (type == "class") {
    return(list(name = "Misclassification Error", scoring = "accuracy", factor = 1, flip = TRUE, more = FALSE))
  }
  if (type == "auc") {
    return(list(name = "AUC", scoring = "roc_auc", factor = 1, flip = FALSE, more = TRUE))
  }
  if (type == "C") {
    return(list(name = "C-index", scoring = "concordance", factor = 1, flip = FALSE, more = TRUE))
  }
  name <- switch(family,
    gaussian = , mgaussian = "Mean-Squared Error", cox = "Partial Likelihood Deviance",
    huber = "Huber Loss", quantile = "Pinball Loss",
    paste(paste0(toupper(substring(family, 1, 1)), substring(family, 2)), "Deviance")
  )
  # the library's log loss is half a deviance
  factor <- if (family %in% c("binomial", "multinomial", "ordinal")) 2 else 1
  list(name = name, scoring = NULL, factor = factor, flip = FALSE, more = FALSE)
}

read_folds <- function(foldid, data) {
  fold <- unlist(foldid, use.names = FALSE)
  if (length(fold) != sum(data$sizes) || anyNA(fold) || !setequal(fold, seq_len(max(fold)))) {
    give_up("foldid must hold a fold from 1 on for each of the ", sum(data$sizes), " rows of x, and no fold may be empty.")
  }
  fold
}

# How much each fold counts: the weight of its rows, of Cox models that of its events.
fold_weights <- function(fold, problem) {
  data <- problem$data
  flat <- function(values) if (is.list(values)) unlist(values, use.names = FALSE) else as.vector(values)
  weights <- if (is.null(data$weights)) 1 else flat(data$weights)
  if (problem$family$name == "cox") {
    weights <- weights * as.vector(ask("events", data$python$y))
  }
  fold <- flat(fold)
  as.vector(tapply(rep(weights, length.out = length(fold)), factor(fold, seq_len(max(fold, na.rm = TRUE))), sum))
}

as_cv <- function(found, fit, measure, problem, foldid, call) {
  scores <- matrix(as.double(found$scores), ncol = ncol(found$scores)) * measure$factor
  if (measure$flip) scores <- 1 - scores
  if (problem$family$name == "mgaussian") scores <- scores * length(fit$tasks) # a sum over responses, as in glmnet
  fold <- if (is.null(foldid)) found$fold else foldid
  share <- fold_weights(fold, problem)
  if (problem$family$name == "cox" && is.null(measure$scoring)) {
    scores <- sweep(scores, 2, share, "/") * mean(share) # the library divides by the mean number of events of a fold
  }
  solved <- rowSums(is.na(scores)) == 0
  n <- ncol(scores)
  cvm <- as.vector(scores %*% share) / sum(share)
  cvsd <- sqrt(as.vector((scores - cvm)^2 %*% share) / sum(share) / (n - 1))
  sign <- if (measure$more) -1 else 1
  best <- which(solved & sign * cvm <= min((sign * cvm)[solved]))[1]
  near <- which(solved & sign * cvm <= (sign * cvm + cvsd)[best])[1]
  cv <- list(
    lambda = fit$lambda, cvm = cvm, cvsd = cvsd, cvup = cvm + cvsd, cvlo = cvm - cvsd, nzero = fit$df,
    call = call, name = measure$name, tasksieve.fit = fit, lambda.min = fit$lambda[best], lambda.1se = fit$lambda[near],
    index = c(min = best, "1se" = near), foldid = fold, model = found$model
  )
  structure(cv, class = "cv.tasksieve")
}

#' Coefficients, predictions, prints and plots of a cross-validation
#'
#' @param object,x Of [cv.tasksieve()].
#' @param newx As in [predict.tasksieve()].
#' @param s `"lambda.1se"`, `"lambda.min"`, or numbers.
#' @param digits Significant digits.
#' @param sign.lambda `-1` plots against minus the logarithm.
#' @param ... Further arguments of [coef.tasksieve()], [predict.tasksieve()], or [graphics::plot()].
#' @return As [coef.tasksieve()] and [predict.tasksieve()]; `print` and `plot` their argument, invisibly.
#' @name methods of cv.tasksieve
NULL

#' @rdname methods-of-cv.tasksieve
#' @export
coef.cv.tasksieve <- function(object, s = c("lambda.1se", "lambda.min"), ...) {
  coef(object$tasksieve.fit, s = value_of(object, s), ...)
}

#' @rdname methods-of-cv.tasksieve
#' @export
predict.cv.tasksieve <- function(object, newx, s = c("lambda.1se", "lambda.min"), ...) {
  predict(object$tasksieve.fit, newx, s = value_of(object, s), ...)
}

value_of <- function(cv, s) {
  if (is.numeric(s)) s else cv[[match.arg(s, c("lambda.1se", "lambda.min"))]]
}

#' @rdname methods-of-cv.tasksieve
#' @method print cv.tasksieve
#' @export
print.cv.tasksieve <- function(x, digits = 4, ...) {
  cat("\nCall: ", deparse1(x$call), "\n\nMeasure:", x$name, "\n\n")
  at <- x$index
  found <- data.frame(
    Lambda = x$lambda[at], Index = at, Measure = x$cvm[at], SE = x$cvsd[at], Nonzero = x$nzero[at],
    Gap = signif(x$tasksieve.fit$relative.gap[at], 2), row.names = c("min", "1se")
  )
  print(found, digits = digits)
  invisible(x)
}

#' @rdname methods-of-cv.tasksieve
#' @method plot cv.tasksieve
#' @export
plot.cv.tasksieve <- function(x, sign.lambda = 1, ...) {
  at <- sign.lambda * log(x$lambda)
  settings <- utils::modifyList(
    list(
      ylim = range(x$cvup, x$cvlo, na.rm = TRUE), pch = 20, col = "red3", ylab = x$name,
      xlab = if (sign.lambda < 0) "-Log(Lambda)" else "Log(Lambda)"
    ),
    list(...)
  )
  do.call(graphics::plot, c(list(at, x$cvm), settings))
  graphics::segments(at, x$cvlo, at, x$cvup, col = "grey60")
  graphics::points(at, x$cvm, pch = settings$pch, col = settings$col)
  graphics::abline(v = at[x$index], lty = 3)
  graphics::axis(3, at = at, labels = x$nzero, tick = FALSE, line = -0.8)
  invisible(x)
}
