# x as a path: the matrix stays in its file, and what is needed is read.

design_of_file <- function(path) {
  path <- path.expand(path)
  kind <- kind_of_file(path)
  if (kind == "desc") {
    about <- read_descriptor(path)
    python <- ask("opened", about$file, "raw", as.list(about$dim), about$dtype, .keep = TRUE)
    return(list(python = python, dim = as.integer(about$dim), names = about$names, stays = TRUE))
  }
  python <- ask("opened", if (kind == "npy") path else sub("\\.(bed|pgen)$", "", path), kind, .keep = TRUE)
  about <- ask("about", python)
  list(python = python, dim = as.integer(unlist(about$shape)), names = unlist(about$names), stays = TRUE)
}

kind_of_file <- function(path) {
  ending <- tolower(tools::file_ext(path))
  if (ending %in% c("npy", "desc", "bed", "pgen") && file.exists(path)) {
    return(ending)
  }
  for (kind in c("bed", "pgen")) {
    if (file.exists(paste0(path, ".", kind))) {
      return(kind)
    }
  }
  give_up(
    "x is the path ", path, ", and there is no such matrix: a NumPy file (.npy), a descriptor of bigmemory (.desc), or ",
    "the prefix of PLINK files (.bed, .bim, .fam; .pgen, .pvar, .psam) is read."
  )
}

# What a descriptor of a file-backed big.matrix says. It is R code: only its literals are looked at, nothing is evaluated.
read_descriptor <- function(path) {
  code <- parse(path, keep.source = FALSE)[[1]]
  about <- if (is.call(code)) as.list(code$description)[-1]
  literal <- function(name) if (is.language(about[[name]])) NULL else about[[name]]
  dtype <- c(double = "<f8", float = "<f4")[literal("type")]
  dim <- as.numeric(c(literal("nrow"), literal("ncol")))
  if (length(dim) != 2 || is.null(literal("filename"))) {
    give_up(path, " is not the descriptor of a file-backed big.matrix.")
  }
  if (is.na(dtype)) {
    give_up(path, " has entries of type ", literal("type"), ": \"double\" and \"float\" are read.")
  }
  if (isTRUE(literal("separated")) || !identical(as.numeric(c(literal("totalRows"), literal("totalCols"))), dim)) {
    give_up(path, " is a separated or a partial big.matrix: write it with deepcopy() to a file of its own.")
  }
  names <- about$colNames
  names <- if (is.call(names) && identical(names[[1]], as.name("c"))) vapply(as.list(names)[-1], as.character, "")
  list(file = file.path(dirname(path), literal("filename")), dim = dim, dtype = unname(dtype), names = names)
}
