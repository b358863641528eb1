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
site <- rep(1:4, length.out = n)
size <- as.numeric(utils::object.size(x)) / 2^20
forget()
made <- peak()
started <- proc.time()
for (case in c("one task", "four tasks, stacked")) {
  fit <- tasksieve(x, y, if (case == "one task") NULL else site, nlambda = 20, lambda.min.ratio = 0.1)
  at <- peak()
  cat(sprintf(
    "%s: x %.0f MiB; peak before x %.0f, with x %.0f, after the path %.0f: %.2f of x beyond it (%d features selected)\n",
    case, size, before, made, at, (at - made) / size, max(fit$df)
  ))
}
cat(sprintf("processor time %.0f s\n", sum((proc.time() - started)[1:2])))
