# The one door to Python: which one, and the module that is asked.

state <- new.env(parent = emptyenv())

# NumPy 2 needs reticulate 1.38; older ones refuse it.
numpy_pin <- function() {
  if (utils::packageVersion("reticulate") < "1.38") "numpy<2" else "numpy"
}

environment_name <- "r-tasksieve"

environment_folder <- function(envname = environment_name) {
  file.path(reticulate::virtualenv_root(), envname)
}

python_in <- function(folder) {
  file.path(folder, if (.Platform$OS.type == "windows") "Scripts/python.exe" else "bin/python")
}

# NULL: reticulate looks for itself.
chosen_python <- function() {
  named <- c(getOption("tasksieve.python"), Sys.getenv("TASKSIEVE_PYTHON"), Sys.getenv("RETICULATE_PYTHON"))
  named <- named[nzchar(named)]
  if (length(named)) {
    return(named[[1]])
  }
  own <- python_in(environment_folder())
  if (file.exists(own)) own else NULL
}

start_python <- function() {
  if (reticulate::py_available()) {
    return(invisible())
  }
  python <- chosen_python()
  if (!is.null(python)) {
    # The variable, and not use_python(): reticulate then looks at nothing else (pyproject.toml of the folder, say).
    before <- Sys.getenv("RETICULATE_PYTHON", unset = NA)
    Sys.setenv(RETICULATE_PYTHON = python)
    on.exit(if (is.na(before)) Sys.unsetenv("RETICULATE_PYTHON") else Sys.setenv(RETICULATE_PYTHON = before))
  }
  reticulate::py_config()
  invisible()
}

helper <- function() {
  if (!is.null(state$helper)) {
    return(state$helper)
  }
  found <- tryCatch(start_python(), error = identity)
  if (inherits(found, "error")) {
    give_up("No Python was found (", conditionMessage(found), "). install_tasksieve() makes an environment.")
  }
  if (!reticulate::py_numpy_available()) {
    give_up(
      "The NumPy of ", reticulate::py_config()$python, " is missing, or not one that reticulate ",
      utils::packageVersion("reticulate"), " can use: it needs \"", numpy_pin(), "\". install_tasksieve() makes an ",
      "environment that has it; TASKSIEVE_PYTHON names one of yours."
    )
  }
  if (!reticulate::py_module_available("tasksieve")) {
    give_up(
      "The Python package tasksieve is not in ", reticulate::py_config()$python, ". install_tasksieve() installs it; ",
      "TASKSIEVE_PYTHON names an environment of yours, before Python is first used in a session."
    )
  }
  folder <- system.file("python", package = "tasksieve", mustWork = TRUE)
  state$helper <- reticulate::import_from_path("tasksieve_for_r", path = folder, convert = FALSE)
  state$helper
}

#' Is the Python package there?
#'
#' Whether [tasksieve()] can work in this session. Python is started if it is not running.
#'
#' @return `TRUE` or `FALSE`; [tasksieve_doctor()] says why.
#' @export
#' @examples
#' tasksieve_available()
tasksieve_available <- function() {
  found <- tryCatch(helper(), error = identity)
  !inherits(found, "error")
}

# A matrix or an array as one of NumPy, without a copy. (The helper first: else reticulate starts a Python of its choice.)
view <- function(x) {
  helper()
  reticulate::r_to_py(x)
}

# A vector as an array of one dimension: reticulate makes lists and scalars of vectors.
as_array <- function(x) {
  if (is.null(x)) NULL else view(array(x, length(x)))
}
