#' Which features would be found again?
#'
#' Stability selection by complementary pairs: the path is followed on random halves of the rows (drawn within tasks), and
#' a feature is stable if at least a share `cutoff` of the halves selects it among its first `q`. The expected number of false ones is bounded
#' (Shah and Samworth 2013).
#'
#' @inheritParams tasksieve
#' @param n.pairs Pairs of halves.
#' @param cutoff,pfer,q The share, the bound, and the number of features on a half: two of them, or fewer, as in
#'   `stabs::stabsel()`.
#' @param assumption `"unimodal"`, `"r-concave"` or `"none"`: what the bound assumes.
#' @param ... Arguments of [tasksieve()].
#' @return An object of class `"tasksieve_stability"`: `probability` of each feature, `selected` (their names), `cutoff`, `q`,
#'   `pfer` (the bound) and `bounds` under each assumption; `path`, probabilities along `lambda`.
#' @export
#' @examplesIf tasksieve_available()
#' set.seed(1)
#' x <- matrix(rnorm(100 * 20), 100)
#' stability(x, x[, 1] + rnorm(100), pfer = 1, n.pairs = 10)
stability <- function(x, y, task = NULL, family = "gaussian", n.pairs = 50, cutoff = NULL, pfer = NULL, q = NULL,
                      assumption = c("unimodal", "r-concave", "none"), weights = NULL, ...) {
  refuse_unknown(c("threads", model_arguments), ...)
  problem <- read_problem(x, y, task, family, weights, NULL, ...)
  about <- list(
    n_pairs = as.integer(n.pairs), threshold = cutoff, pfer = pfer, q = if (is.null(q)) NULL else as.integer(q),
    assumption = match.arg(assumption), random_state = sample.int(.Machine$integer.max, 1)
  )
  found <- ask(
    "stability", problem$model$loss, problem$model$options, problem$data$python, about[!vapply(about, is.null, NA)]
  )
  names <- problem$data$names
  probability <- setNames(as.vector(found$probability), names)
  lambda <- as.vector(found$strength) / problem$model$unit
  path <- new("dgCMatrix",
    i = as.integer(found$path$i), p = as.integer(found$path$p), x = as.double(found$path$x),
    Dim = c(length(lambda), length(names)), Dimnames = list(NULL, names)
  )
  structure(
    list(
      probability = probability, selected = names[!is.na(probability) & probability >= found$cutoff],
      cutoff = found$cutoff, q = found$q, pfer = found$pfer, bounds = unlist(found$bounds), n.pairs = found$n_pairs,
      selectable = found$selectable, lambda = lambda, path = path, halves = found$halves, call = match.call(),
      selection = found$selection
    ),
    class = "tasksieve_stability"
  )
}

#' @method print tasksieve_stability
#' @export
print.tasksieve_stability <- function(x, ...) {
  cat("\nCall: ", deparse1(x$call), "\n\n")
  cat(sprintf(
    "%d of %d features are stable: selected by at least %.2f of %d halves, among their first %d\n",
    length(x$selected), x$selectable, x$cutoff, 2 * x$n.pairs, x$q
  ))
  cat(sprintf("expected number of false ones: at most %.3g\n\n", x$pfer))
  if (length(x$selected)) print(sort(x$probability[x$selected], decreasing = TRUE))
  invisible(x)
}

#' @method plot tasksieve_stability
#' @export
plot.tasksieve_stability <- function(x, ...) {
  stable <- names(x$probability) %in% x$selected
  graphics::matplot(
    log(x$lambda), as.matrix(x$path),
    type = "l", lty = 1, col = ifelse(stable, "red3", "grey70"), xlim = rev(range(log(x$lambda))), ylim = c(0, 1),
    xlab = "Log Lambda", ylab = "Share of halves", ...
  )
  graphics::abline(h = x$cutoff, lty = 3)
  invisible(x)
}
