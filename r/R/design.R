# x in any form, as one matrix that Python reads where it lies.

# A design: `python`, the matrix there; `dim`; `names` of columns; `stays`: whether its rows are only in a file.
as_design <- function(x) {
  if (is.character(x) && length(x) == 1) {
    return(design_of_file(x))
  }
  if (is(x, "big.matrix")) {
    give_up("x is a big.matrix: pass the path of its descriptor file (.desc), which is then read where it lies.")
  }
  if (is.data.frame(x)) {
    give_up("x is a data frame: use a formula, y ~ ., or give y as the name of a column.")
  }
  if (is(x, "sparseMatrix")) {
    return(sparse_design(as(as(as(x, "dMatrix"), "generalMatrix"), "CsparseMatrix")))
  }
  if (is(x, "Matrix")) {
    x <- as.matrix(x)
  }
  if (!is.matrix(x) || !(is.numeric(x) || is.logical(x))) {
    give_up(
      "x must be a numeric matrix, a sparse matrix of Matrix, a path, or a list of such, one per task; it is ",
      class(x)[1], "."
    )
  }
  if (!is.double(x)) {
    storage.mode(x) <- "double"
  }
  # R's columns are one after the other, as the library wants them: Python gets a view.
  list(python = view(x), dim = dim(x), names = colnames(x), stays = FALSE)
}

sparse_design <- function(x) {
  python <- ask("sparse", as_array(x@x), as_array(x@i), as_array(x@p), as.list(dim(x)), .keep = TRUE)
  list(python = python, dim = dim(x), names = colnames(x), stays = FALSE)
}
