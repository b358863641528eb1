#' How good is this answer?
#'
#' Judges the coefficients of glmnet (or of [tasksieve()]) by a proof: how far they are from the optimum at most, and which zeros and
#' non-zeros are provably right or wrong. Nothing is taken on trust from the program that computed them.
#'
#' @param object Of `glmnet()`, `cv.glmnet()`, [tasksieve()] or [cv.tasksieve()], with one task.
#' @param x,y The data of the fit.
#' @param s One value of lambda, which must be one of the path (nothing is interpolated); of a cross-validation `"lambda.min"` (the default),
#'   `"lambda.1se"`, or a number.
#' @param weights,offset What the fit had of them.
#' @param alpha,standardize,intercept,penalty.factor,type.multinomial What the fit had; by default what its call says, or
#'   glmnet's defaults.
#' @param solve Also solve the problem here: a sharper bound, and by how much our solution is better.
#' @param where The environment in which names in the call of the fit are looked up.
#' @param ... Of the methods for cross-validations: arguments of those for paths.
#' @return An object of class `"tasksieve_grade"`: `gap` (a proved bound on objective minus optimum), `relative.gap` (to the objective of the null
#'   model), `objective`, `excess` (over our
#'   own solution), `proven.zero`, `proven.nonzero`, `wrong.zero`, `wrong.nonzero` and `selected`, by feature; and of the fit `lambda`,
#'   `dev.ratio` and `thresh` (of [tasksieve()] `tol`). It prints as one line.
#' @export
#' @examplesIf tasksieve_available() && requireNamespace("glmnet", quietly = TRUE)
#' x <- matrix(rnorm(2000), 100)
#' y <- x[, 1] - x[, 2] + rnorm(100)
#' fit <- glmnet::glmnet(x, y)
#' grade(fit, x, y, s = fit$lambda[20])
grade <- function(object, x, y, s = NULL, ...) {
  UseMethod("grade")
}

#' @rdname grade
#' @export
grade.glmnet <- function(object, x, y, s = NULL, weights = NULL, offset = NULL, alpha = NULL, standardize = NULL,
                         intercept = NULL, penalty.factor = NULL, type.multinomial = NULL, solve = TRUE, where = parent.frame(), ...) {
  refuse_others(...)
  said <- function(name, given, default) {
    if (!is.null(given)) {
      return(given)
    }
    written <- object$call[[name]]
    found <- tryCatch(eval(written, where), error = function(e) {
      give_up(name, " of the fit is not known here (", conditionMessage(e), "): give it, ", name, " = .")
    })
    if (is.null(found)) default else found
  }
  s <- if (is.null(s)) give_up("s is missing: which lambda of the path?") else on_path(object$lambda, s)
  family <- family_of_glmnet(object)
  grouped <- isTRUE(object$grouped)
  given <- list(
    alpha = said("alpha", alpha, 1), standardize = said("standardize", standardize, TRUE),
    intercept = said("intercept", intercept, TRUE), penalty.factor = said("penalty.factor", penalty.factor, NULL)
  )
  if (family == "multinomial") {
    given$type.multinomial <- if (is.null(type.multinomial)) if (grouped) "grouped" else "ungrouped" else type.multinomial
  }
  refuse_limits(object, where)
  weights <- said("weights", weights, NULL)
  offset <- said("offset", offset, NULL)
  if (isTRUE(object$offset) && is.null(offset)) give_up("the fit had an offset: give it, offset = .")
  found <- coef(object, s = s)
  parts <- if (is.list(found)) lapply(found, as.matrix) else list(as.matrix(found))
  constants <- if (family == "cox") NULL else vapply(parts, function(part) part[1, 1], 1)
  beta <- do.call(rbind, lapply(parts, function(part) if (family == "cox") part[, 1] else part[-1, 1]))
  problem <- do.call(read_problem, c(list(x, y, NULL, family, weights, offset), given))
  about <- list(
    program = "glmnet", lambda = s, dev.ratio = object$dev.ratio[match(s, object$lambda)], thresh = said("thresh", NULL, 1e-7)
  )
  graded(problem, beta, constants, NULL, about, solve)
}

#' @rdname grade
#' @export
grade.cv.glmnet <- function(object, x, y, s = c("lambda.min", "lambda.1se"), where = parent.frame(), ...) {
  s <- if (is.numeric(s)) s else object[[match.arg(s)]]
  fit <- object$glmnet.fit
  fit$call <- object$call # of the whole; that of the path names arguments of another function
  grade(fit, x, y, s = s, where = where, ...)
}

#' @rdname grade
#' @export
grade.tasksieve <- function(object, x, y, s = NULL, weights = NULL, offset = NULL, solve = TRUE, ...) {
  refuse_others(...)
  if (length(object$tasks) > 1 && object$form != "columns") {
    give_up("grade() takes one task; certificate() proves all values of a path of several tasks.")
  }
  s <- if (is.null(s)) give_up("s is missing: which lambda of the path?") else on_path(object$lambda, s)
  problem <- again(object, x, y, NULL, weights, offset)
  rows <- rows_of(object)
  k <- match(s, object$lambda)
  beta <- do.call(rbind, lapply(rows$beta, function(own) as.vector(own[, k])))
  thresholds <- if (is.null(rows$thresholds)) NULL else t(rows$thresholds[[1]][, k])
  about <- list(program = "tasksieve", lambda = s, dev.ratio = object$dev.ratio[k], tol = object$arguments$tol)
  graded(problem, beta, if (is.null(object$a0)) NULL else rows$a0[, k], thresholds, about, solve)
}

#' @rdname grade
#' @export
grade.cv.tasksieve <- function(object, x, y, s = c("lambda.min", "lambda.1se"), ...) {
  s <- if (is.numeric(s)) s else object[[match.arg(s)]]
  grade(object$tasksieve.fit, x, y, s = s, ...)
}

on_path <- function(lambda, s) {
  k <- which(abs(lambda - s[1]) <= 1e-9 * s[1])
  if (length(s) != 1 || !length(k)) {
    give_up("s must be one of the lambda of the path: between them coefficients are interpolated, and solve no problem.")
  }
  lambda[k[1]]
}

family_of_glmnet <- function(object) {
  kind <- class(object)[1]
  found <- c(
    elnet = "gaussian", lognet = "binomial", multnet = "multinomial", fishnet = "poisson", coxnet = "cox",
    mrelnet = "mgaussian"
  )[kind]
  if (is.na(found)) {
    give_up("a fit of class \"", kind, "\" is not graded: its family must be one of glmnet's own, by name.")
  }
  unname(found)
}

refuse_limits <- function(object, where) {
  for (name in c("lower.limits", "upper.limits", "exclude")) {
    if (!is.null(object$call[[name]])) {
      give_up("the fit had ", name, ": its problem is not one that is graded.")
    }
  }
}

# `about`: what the answer says of itself, `lambda` among it.
graded <- function(problem, beta, constants, thresholds, about, solve) {
  options <- options_of_one(problem, about$lambda)
  keep <- c("penalty", "alpha", "ridge", "fit_intercept", "standardize", "positive", "feature_weights", "task_weights")
  options <- options[intersect(keep, names(options))]
  loss <- problem$model$loss
  options$loss <- if (loss == "cox") paste0("cox:ties=", problem$model$options$ties) else loss
  options$solve <- solve
  if (length(problem$data$classes) > 2 && is.null(thresholds)) {
    beta <- array(beta, c(nrow(beta), 1, ncol(beta)))
    constants <- matrix(constants, ncol = 1)
  }
  thresholds <- if (is.null(thresholds)) NULL else view(thresholds)
  found <- ask(
    "graded", view(beta), if (is.matrix(constants)) view(constants) else as_array(constants), thresholds, options,
    problem$data$python
  )
  flags <- lapply(found[c("proven_zero", "proven_nonzero", "wrong_zero", "wrong_nonzero", "selected")], function(flag) {
    setNames(as.vector(flag), problem$data$names)
  })
  names(flags) <- gsub("_", ".", names(flags))
  structure(
    c(
      about,
      list(
        objective = found$objective, gap = found$dual_gap, relative.gap = found$relative_gap, excess = found$excess,
        words = found$words
      ),
      flags
    ),
    class = "tasksieve_grade"
  )
}

#' @method print tasksieve_grade
#' @export
print.tasksieve_grade <- function(x, ...) {
  right <- sum(x$selected & x$proven.nonzero) + sum(!x$selected & x$proven.zero)
  wrong <- sum(x$wrong.zero) + sum(x$wrong.nonzero)
  asked <- intersect(c("thresh", "tol"), names(x))
  better <- wrong > 0 || x$relative.gap > 1e-6 # what tasksieve() asks of itself by default
  cat(sprintf(
    "%s at lambda = %.4g (dev.ratio %.3g, %s %.2g): at most %.2g above the optimum (relative: %.1g); %d of %d features proved, %d wrong%s\n",
    x$program, x$lambda, x$dev.ratio, asked, x[[asked]], x$gap, x$relative.gap, right, length(x$selected), wrong,
    if (better) sprintf(": fit again with a smaller %s", asked) else ""
  ))
  invisible(x)
}
