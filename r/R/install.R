#' Install the Python package
#'
#' Makes a virtual environment of its own and installs the Python package tasksieve into it. Later sessions find it by
#' themselves.
#'
#' reticulate before 1.38 (Debian 12 has 1.28) cannot use NumPy 2 and stops with "incompatible NumPy binary version". With
#' such a reticulate the environment gets `numpy<2`, and a message says so; all else is the newest that goes with it.
#'
#' An environment of your own does as well: name its interpreter in the environment variable `TASKSIEVE_PYTHON`, or in
#' `options(tasksieve.python = )`, before Python is first used.
#'
#' @param source What pip installs: the folder of a checkout, a wheel, or a requirement. A checkout is compiled, which
#'   takes a C++17 compiler and some minutes.
#' @param extras Extras of the package: `"report"` for [report()], `"genotypes"` for PLINK 2 files.
#' @param python The interpreter that the environment is made from, 3.11 or newer, with a shared library.
#' @param envname The environment: a name, as `reticulate::virtualenv_root()` has them, or a folder.
#' @param upgrade Install again what is there.
#' @return The path of its interpreter, invisibly.
#' @export
#' @examples
#' \dontrun{
#' install_tasksieve("~/src/tasksieve")
#' tasksieve_doctor()
#' }
install_tasksieve <- function(source = "tasksieve", extras = "report", python = NULL, envname = environment_name,
                              upgrade = FALSE) {
  folder <- if (grepl("[/\\\\]", envname)) envname else environment_folder(envname)
  python <- if (is.null(python)) find_python() else python
  if (!file.exists(python_in(folder))) {
    message("Making the environment ", folder)
    dir.create(dirname(folder), recursive = TRUE, showWarnings = FALSE)
    run(python, c("-m", "venv", shQuote(folder)), "On Debian and Ubuntu the package python3-venv is needed.")
  }
  pin <- numpy_pin()
  if (pin != "numpy") {
    message(
      "reticulate ", utils::packageVersion("reticulate"), " cannot use NumPy 2: the environment gets ", pin,
      ". With reticulate 1.38 or newer it may have any."
    )
  }
  wanted <- if (dir.exists(source)) normalizePath(source) else source
  if (length(extras)) {
    wanted <- sprintf("%s[%s]", wanted, paste(extras, collapse = ","))
  }
  flags <- c("-m", "pip", "install", "--quiet", "--disable-pip-version-check", if (upgrade) "--upgrade")
  run(python_in(folder), c(flags, shQuote(c(pin, wanted))), "pip's message above says why.")
  if (reticulate::py_available()) {
    message("Python is running in this session already: restart R to use the environment.")
  }
  invisible(python_in(folder))
}

# The first interpreter of the path that is new enough and can be loaded into R.
find_python <- function() {
  test <- paste(
    "import sys, sysconfig;",
    "known = sysconfig.get_config_var;",
    "loads = known('Py_ENABLE_SHARED') or known('PYTHONFRAMEWORK') or sys.platform == 'win32';",
    "sys.exit(0 if loads and sys.version_info >= (3, 11) else 1)"
  )
  places <- unname(Sys.which(c("python3", "python3.14", "python3.13", "python3.12", "python3.11", "python")))
  for (python in unique(places[nzchar(places)])) {
    if (suppressWarnings(as_outside(python, c("-c", shQuote(test)), stdout = FALSE, stderr = FALSE)) == 0) {
      return(python)
    }
  }
  give_up("No Python 3.11 or newer with a shared library was found. Install one, or name it: python = \"/path/to/python3\".")
}

run <- function(program, arguments, remedy) {
  if (as_outside(program, arguments) != 0) {
    give_up("This failed: ", program, " ", paste(arguments, collapse = " "), ". ", remedy)
  }
}

# R puts the system's libraries first for programs that it starts, and a Python of your own would load the system's.
as_outside <- function(program, arguments, ...) {
  system2(program, arguments, env = if (.Platform$OS.type == "unix") "LD_LIBRARY_PATH=" else character(), ...)
}
