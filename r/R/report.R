#' A report: one page that needs nothing else
#'
#' Writes an HTML file about one value of lambda: what was found, how well each task is predicted, the path, and the certificate, which the page can check
#' by itself. In it R's lambda is called alpha, as everywhere in Python.
#'
#' @param object Of [tasksieve()] (with `s`) or [cv.tasksieve()].
#' @param file The file to write.
#' @param x,y,task,weights,offset The data of the fit.
#' @param s A value of lambda; of a cross-validation by default `"lambda.min"`. The model of this value is fitted again.
#' @param stability Of [stability()] on the same data: then its findings are in the report, too.
#' @param title A title.
#' @return The path of the file, invisibly.
#' @export
#' @examples
#' \dontrun{
#' report(cv, "report.html", x, y, task = site)
#' }
report <- function(object, file, x, y, task = NULL, weights = NULL, offset = NULL, s = NULL, stability = NULL,
                   title = NULL) {
  fit <- path_of(object)
  if (inherits(object, "cv.tasksieve")) {
    s <- if (is.null(s)) object$lambda.min else value_of(object, s)
  }
  if (!is.numeric(s) || length(s) != 1) {
    give_up("s must be one value of lambda.")
  }
  problem <- again(fit, x, y, task, weights, offset)
  model <- ask("one", problem$model$loss, options_of_one(problem, s), problem$data$python, .keep = TRUE)
  about <- list(
    feature_names = as.list(problem$data$names), title = title,
    task_names = if (problem$data$form %in% c("list", "columns")) as.list(fit$tasks),
    stability = if (is.null(stability)) NULL else stability$selection
  )
  written <- ask("reported", model, path.expand(file), problem$data$python, about[!vapply(about, is.null, NA)])
  invisible(written)
}
