# Peak memory of a fit beside the size of x: no copy is made.
#
#   Rscript r/tools/memory.R 1e9

library(tasksieve)
bytes <- as.numeric(c(commandArgs(TRUE), 1e9)[1])
n <- 2000
p <- floor(bytes / 8 / n)

# Of memory in use, in MiB, since the last call of forget().
peak <- function() {
  status <- readLines("/proc/self/status")
  as.numeric(gsub("\\D", "", grep("^VmHWM", status, value = TRUE))) / 1024
}

forget <- function() {
  invisible(gc())
  writeLines("5", "/proc/self/clear_refs")
}

set.seed(1)
invisible(tasksieve(matrix(rnorm(2000), 100), rnorm(100), nlambda = 3)) # Python and its libraries are in
forget()
before <- peak()
x <- matrix(0, n, p)
for (j in seq_len(p)) x[, j] <- rnorm(n) # column by column: R makes no second matrix
y <- drop(x[, 1:5] %*% c(2, -1, 1, -1, 1)) + rnorm(n)
cases <- list(
  "one task" = NULL, "four tasks, sorted" = rep(1:4, each = n / 4), "four tasks, rows interleaved" = rep(1:4, n / 4)
)
size <- as.numeric(utils::object.size(x)) / 2^20
forget()
made <- peak()
started <- proc.time()
for (case in names(cases)) {
  forget()
  fit <- tasksieve(x, y, cases[[case]], nlambda = 20, lambda.min.ratio = 0.1)
  cat(sprintf(
    "%s: x %.0f MiB; in use before x %.0f, with x %.0f, at most during the path %.0f: %.2f of x beyond it (%d features selected)\n",
    case, size, before, made, peak(), (peak() - made) / size, max(fit$df)
  ))
}
cat(sprintf("processor time %.0f s\n", sum((proc.time() - started)[1:2])))
