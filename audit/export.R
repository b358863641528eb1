# A data set of an R package as text: columns, then labels in columns whose names begin with ..y.
name <- commandArgs(TRUE)[1]
suppressMessages({library(glmnet); library(survival); library(MASS)})
columns <- function(formula, table) model.matrix(formula, model.frame(formula, table, na.action = na.pass))[, -1, drop = FALSE]
whole <- function(table) table[complete.cases(table), ]
example <- function(name) {
  data(list = name, package = "glmnet")
  found <- get(name)
  list(X = found$x, y = found$y)
}
read <- switch(name,
  birthwt = {
    table <- within(MASS::birthwt, race <- factor(race))
    list(X = columns(~ age + lwt + race + smoke + ptl + ht + ui + ftv, table), y = table$low)
  },
  Pima = {
    table <- rbind(MASS::Pima.tr, MASS::Pima.te)
    list(X = columns(~ (npreg + glu + bp + skin + bmi + ped + age)^2, table), y = as.integer(table$type) - 1)
  },
  quine = list(X = columns(~ (Eth + Sex + Age + Lrn)^2, MASS::quine), y = MASS::quine$Days),
  epil = list(X = columns(~ trt + base + age + V4 + period, MASS::epil), y = MASS::epil$y),
  lung = {
    table <- whole(survival::lung)
    X <- columns(~ age + sex + ph.ecog + ph.karno + pat.karno + meal.cal + wt.loss, table)
    list(X = X, y = cbind(table$time, table$status - 1))
  },
  pbc = {
    table <- whole(survival::pbc)
    X <- columns(~ . - id - time - status, table)
    list(X = X, y = cbind(table$time, as.integer(table$status == 2)))
  },
  example(name)
)
y <- as.matrix(read$y)
if (is.character(y)) y <- matrix(as.integer(factor(y)))
colnames(y) <- paste0("..y", seq_len(ncol(y)))
X <- as.matrix(read$X)
colnames(X) <- paste0("x", seq_len(ncol(X)))
table <- cbind(X, y)
cat(paste(colnames(table), collapse = ","), "\n", sep = "")
for (i in seq_len(nrow(table))) cat(paste(sprintf("%.17g", table[i, ]), collapse = ","), "\n", sep = "")
