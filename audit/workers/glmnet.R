# glmnet: jobs in folders named on standard input; its own path of 100 values, everything but thresh and maxit as shipped.
suppressMessages({library(glmnet); library(survival)})
versions <- sprintf('{"R": "%s.%s", "glmnet": "%s"}', R.version$major, R.version$minor, packageVersion("glmnet"))
input <- file("stdin", "r")
while (length(folder <- readLines(input, 1)) > 0) {
  file_of <- function(name) file.path(folder, name)
  asked <- readLines(file_of("job.txt"))  # loss; rows, columns, outputs; shares; tolerance (0: as shipped); patient?; strengths
  loss <- asked[1]
  size <- as.integer(strsplit(asked[2], " ")[[1]])
  shares <- as.numeric(strsplit(asked[3], " ")[[1]])
  tolerance <- as.numeric(asked[4])
  numbers <- function(name) readBin(file_of(name), "double", file.size(file_of(name)) / 8)
  X <- matrix(numbers("X.bin"), size[1], size[2])
  Y <- matrix(numbers("y.bin"), size[1], size[3])
  family <- switch(loss, squared = "gaussian", grouped = "mgaussian", logistic = "binomial", loss)
  y <- switch(loss, grouped = Y, cox = Surv(Y[, 1], Y[, 2]), multinomial = factor(Y[, 1]), Y[, 1])
  options <- list(quote(X), quote(y), family = family)
  glmnet.control(factory = TRUE)
  if (tolerance > 0) {
    options <- c(options, thresh = tolerance)
    glmnet.control(fdev = 0, devmax = 1)  # the whole path, so that the strengths of the first one are there again
  }
  if (tolerance > 0 && asked[5] == "1") options <- c(options, maxit = 1e7)
  warned <- error <- ""
  start <- sum(proc.time()[1:2])
  fit <- withCallingHandlers(
    tryCatch(do.call("glmnet", options), error = function(e) { error <<- conditionMessage(e); NULL }),
    warning = function(w) { warned <<- conditionMessage(w); invokeRestart("muffleWarning") })
  seconds <- sum(proc.time()[1:2]) - start
  answers <- character(0)
  if (!is.null(fit) && length(fit$lambda) > 0) for (s in seq_along(shares)) {
    wanted <- if (tolerance > 0) as.numeric(strsplit(asked[6], " ")[[1]])[s] else shares[s] * fit$lambda[1]
    at <- which.min(abs(log(fit$lambda / wanted)))
    beta <- if (is.list(fit$beta)) fit$beta else list(fit$beta)
    writeBin(unlist(lapply(beta, function(part) as.vector(part[, at]))), file_of(sprintf("coef-%d.bin", s - 1)))
    a0 <- if (loss == "cox") 0 else if (is.matrix(fit$a0)) fit$a0[, at] else fit$a0[at]
    answers <- c(answers, sprintf('{"alpha": %.17g, "intercept": [%s]}', fit$lambda[at],
                                  paste(sprintf("%.17g", a0), collapse = ", ")))
  }
  word <- function(text) gsub('["\\\\[:cntrl:]]', " ", substr(text, 1, 300))
  text <- sprintf('{"tolerance": %s, "versions": %s, "seconds": %.6g, "warned": [%s], %s"answers": [%s]}',
    if (tolerance > 0) sprintf("%.17g", tolerance) else "null", versions, seconds,
    if (nzchar(warned)) sprintf('"%s"', word(warned)) else "",
    if (nzchar(error)) sprintf('"error": "%s", ', word(error)) else "", paste(answers, collapse = ", "))
  writeLines(text, file_of("answer.part"))
  invisible(file.rename(file_of("answer.part"), file_of("answer.json")))
  invisible(file.create(file_of("done")))
}
