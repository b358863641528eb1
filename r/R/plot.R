#' Plot a path
#'
#' Coefficients along the path, as glmnet draws them; of several tasks or classes a panel for each, or the norms of the rows.
#'
#' @param x Of [tasksieve()].
#' @param xvar `"lambda"` (its logarithm) or `"norm"` (the sum of absolute coefficients).
#' @param which `"coefficients"`, a panel for each task or class, or `"rows"`: one panel with \eqn{\lVert W_j \rVert_2}{|W_j|}, over all tasks.
#' @param label Whether lines carry the numbers of their columns.
#' @param ... Further arguments of [graphics::matplot()].
#' @return `x`, invisibly.
#' @export
#' @examplesIf tasksieve_available()
#' x <- matrix(rnorm(600), 60)
#' plot(tasksieve(x, x[, 1] - x[, 2] + rnorm(60)), label = TRUE)
plot.tasksieve <- function(x, xvar = c("lambda", "norm"), which = c("coefficients", "rows"), label = FALSE, ...) {
  xvar <- match.arg(xvar)
  which <- match.arg(which)
  beta <- lapply(rows_of(x)$beta, as.matrix)
  titles <- row_titles(x)
  if (which == "rows") {
    beta <- list(sqrt(Reduce(`+`, lapply(beta, `^`, 2))))
    titles <- "norms of rows"
  }
  if (length(beta) > 1) {
    shape <- grDevices::n2mfrow(length(beta))
    before <- graphics::par(mfrow = shape)
    on.exit(graphics::par(before))
  }
  for (r in seq_along(beta)) {
    draw_lines(x, beta[[r]], xvar, titles[r], label, ...)
  }
  invisible(x)
}

row_titles <- function(x) {
  classes <- x$outputs$class
  several <- length(x$tasks) > 1
  if (is.null(classes)) {
    return(if (several) x$tasks[x$outputs$task] else "")
  }
  if (several) paste(x$tasks[x$outputs$task], classes, sep = ", ") else classes
}

draw_lines <- function(x, beta, xvar, title, label, ...) {
  used <- which(rowSums(beta != 0) > 0)
  at <- if (xvar == "lambda") log(x$lambda) else colSums(abs(beta))
  lines <- if (length(used)) t(beta[used, , drop = FALSE]) else matrix(0, length(at), 1)
  settings <- utils::modifyList(
    list(
      type = "l", lty = 1, main = title, ylab = "Coefficients",
      xlab = if (xvar == "lambda") "Log Lambda" else "L1 Norm"
    ),
    list(...)
  )
  do.call(graphics::matplot, c(list(at, lines), settings))
  ticks <- pretty(at)
  graphics::axis(3, at = ticks, labels = x$df[pmax(1, vapply(ticks, function(tick) which.min(abs(at - tick)), 1L))], tick = FALSE, line = -0.8)
  if (label && length(used)) {
    end <- length(at)
    graphics::text(at[end], lines[end, ], used, cex = 0.6, pos = if (xvar == "lambda") 2 else 4)
  }
}
