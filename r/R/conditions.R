# Errors and warnings of Python as conditions of R, under the names that arguments have here.

give_up <- function(..., class = NULL) {
  stop(structure(
    class = c(class, "tasksieve_error", "error", "condition"),
    list(message = paste0(...), call = NULL)
  ))
}

tell <- function(message, class = NULL) {
  warning(structure(
    class = c(class, "tasksieve_warning", "warning", "condition"),
    list(message = message, call = NULL)
  ))
}

# A function of inst/python/tasksieve_for_r.py, with its arguments in order; `.keep`: the answer stays a Python object.
ask <- function(.function, ..., .keep = FALSE) {
  answer <- helper()$ask(.function, list(...))
  part <- function(name) reticulate::py_get_item(answer, name, silent = TRUE)
  for (one in reticulate::py_to_r(part("warnings"))) {
    tell(one[[1]], one[[2]])
  }
  error <- reticulate::py_to_r(part("error"))
  if (!is.null(error)) {
    give_up(error, class = as.character(reticulate::py_to_r(part("kinds"))))
  }
  if (.keep) part("value") else reticulate::py_to_r(part("value"))
}
