# The same data in every form give the same fit.

sites <- function() {
  set.seed(5)
  x <- matrix(rnorm(90 * 6), 90, dimnames = list(NULL, paste0("g", 1:6)))
  site <- rep(c("Rome", "Bern", "Oslo"), 30)
  list(x = x, site = site, y = x[, 1] * c(Rome = 1, Bern = 2, Oslo = -1)[site] + rnorm(90))
}

test_that("lists, columns of a frame, formulas and labels are one problem", {
  skip_without_python()
  d <- sites()
  fit <- tasksieve(d$x, d$y, d$site, nlambda = 10, tol = 1e-9)
  expect_equal(sort(fit$tasks), c("Bern", "Oslo", "Rome"))
  rows <- split(seq_along(d$y), d$site)
  listed <- tasksieve(lapply(rows, function(i) d$x[i, ]), lapply(rows, function(i) d$y[i]), nlambda = 10, tol = 1e-9)
  frame <- data.frame(d$x, outcome = d$y, site = d$site)
  named <- tasksieve(frame, "outcome", "site", nlambda = 10, tol = 1e-9)
  formula <- tasksieve(outcome ~ ., frame, task = ~site, nlambda = 10, tol = 1e-9)
  for (other in list(listed, named, formula)) {
    for (task in fit$tasks) {
      expect_equal(as.matrix(coef(other)[[task]]), as.matrix(coef(fit)[[task]]), tolerance = 1e-6)
    }
  }
  expected <- predict(fit, d$x[1:5, ], s = 0.1, task = d$site[1:5])
  expect_equal(predict(named, frame[1:5, ], s = 0.1), expected, tolerance = 1e-6, ignore_attr = TRUE)
  by_hand <- vapply(1:5, function(i) sum(c(1, d$x[i, ]) * coef(fit, s = 0.1)[[d$site[i]]][, 1]), 1)
  expect_equal(unname(expected[, 1]), by_hand)
  all <- predict(fit, d$x[1:5, ], s = 0.1)
  expect_equal(dim(all), c(5, 3, 1))
  expect_equal(all[cbind(1:5, match(d$site[1:5], fit$tasks), 1)], by_hand)
  lists <- predict(listed, lapply(rows, function(i) d$x[i, ]), s = 0.1)
  expect_equal(unname(lists$Oslo[1, 1]), unname(predict(fit, d$x[rows$Oslo[1], , drop = FALSE], s = 0.1, task = "Oslo")[1, 1]), tolerance = 1e-6)
})

test_that("tasks may be any labels", {
  skip_without_python()
  d <- sites()
  fit <- tasksieve(d$x, d$y, d$site, lambda = 0.1)
  place <- match(d$site, c("Oslo", "Rome", "Bern"))
  for (labels in list(c(1, 2, 10), c(3L, 1L, 2L), c(0.5, 1.5, -2), c(TRUE, FALSE, NA), as.Date("2020-01-01") + 0:2)) {
    task <- labels[place]
    if (anyNA(labels)) {
      expect_error(tasksieve(d$x, d$y, task), "is NA")
      next
    }
    other <- tasksieve(d$x, d$y, task, lambda = 0.1)
    expect_setequal(other$tasks, as.character(labels))
    expect_equal(predict(other, d$x, task = task), predict(fit, d$x, task = d$site), tolerance = 1e-4)
  }
})

test_that("several tasks minimise the objective of the help page", {
  skip_without_python()
  d <- sites()
  lambda <- 0.2
  fit <- tasksieve(d$x, d$y, d$site, lambda = lambda, alpha = 0.5, standardize = FALSE, tol = 1e-10)
  within <- d$y - ave(d$y, d$site)
  scale <- sqrt(mean(within^2))
  value <- function(beta) {
    residual <- unlist(lapply(fit$tasks, function(t) {
      rows <- d$site == t
      d$y[rows] - beta[[t]][1] - d$x[rows, ] %*% beta[[t]][-1]
    }))
    w <- vapply(beta, function(own) own[-1], double(6))
    sum(residual^2) / 2 / 30 + lambda * (0.5 * sum(sqrt(rowSums(w^2))) + 0.25 / scale * sum(w^2))
  }
  beta <- lapply(coef(fit), function(own) own[, 1])
  best <- value(beta)
  expect_equal(best, fit$objective, tolerance = 1e-9)
  set.seed(1)
  for (draw in 1:20) {
    expect_gt(value(lapply(beta, function(own) own + rnorm(7, sd = 0.01))), best)
  }
})

test_that("files are read where they lie", {
  skip_without_python()
  d <- sites()
  fit <- tasksieve(d$x, d$y, d$site, nlambda = 8, tol = 1e-9)
  folder <- tempfile()
  dir.create(folder)
  npy <- file.path(folder, "x.npy")
  reticulate::import("numpy", convert = FALSE)$save(npy, d$x)
  writeBin(as.vector(d$x), file.path(folder, "x.bin"))
  desc <- file.path(folder, "x.desc")
  writeLines(sprintf(
    paste(
      "new(\"big.matrix.descriptor\", description = list(sharedType = \"FileBacked\", filename = \"x.bin\",",
      "dirname = \"%s\", totalRows = 90L, totalCols = 6L, rowOffset = c(0, 90), colOffset = c(0, 6), nrow = 90, ncol = 6,",
      "rowNames = NULL, colNames = c(\"g1\", \"g2\", \"g3\", \"g4\", \"g5\", \"g6\"), type = \"double\", separated = FALSE))"
    ), folder
  ), desc)
  for (path in c(npy, desc)) {
    stored <- tasksieve(path, d$y, d$site, nlambda = 8, tol = 1e-9)
    for (task in fit$tasks) {
      expect_equal(as.matrix(coef(stored)[[task]]), as.matrix(coef(fit)[[task]]), tolerance = 1e-6, ignore_attr = TRUE)
    }
    s <- c(fit$lambda[4], mean(fit$lambda[4:5]))
    expect_equal(
      predict(stored, path, s = s, task = d$site), predict(fit, d$x, s = s, task = d$site),
      tolerance = 1e-6, ignore_attr = TRUE
    )
  }
  expect_equal(rownames(coef(tasksieve(desc, d$y, nlambda = 3)))[2:3], c("g1", "g2"))
  expect_error(tasksieve(file.path(folder, "nothing.npy"), d$y), "no such matrix")
  writeLines(sub("\"double\"", "\"integer\"", readLines(desc), fixed = TRUE), desc)
  expect_error(tasksieve(desc, d$y), "are read")
  writeLines("stop(\"run\")", desc)
  expect_error(tasksieve(desc, d$y), "not the descriptor")
})

test_that("PLINK files are matrices of counts", {
  skip_without_python()
  set.seed(6)
  counts <- matrix(rbinom(40 * 5, 2, 0.4), 40)
  prefix <- tempfile()
  people <- seq_len(40)
  writeLines(paste(people, people, 0, 0, 1, -9), paste0(prefix, ".fam"))
  writeLines(paste(1, paste0("rs", 1:5), 0, 1:5 * 100, "A", "G"), paste0(prefix, ".bim"))
  # two bits a call, four calls a byte: 00 two copies of the first allele, 10 one, 11 none
  codes <- matrix(c(3L, 2L, 0L)[counts + 1], 40)
  bytes <- apply(codes, 2, function(own) colSums(matrix(own, 4) * c(1, 4, 16, 64)))
  writeBin(as.raw(c(0x6c, 0x1b, 0x01, bytes)), paste0(prefix, ".bed"))
  y <- counts[, 2] + rnorm(40)
  fit <- tasksieve(counts, y, nlambda = 8, tol = 1e-9)
  stored <- tasksieve(prefix, y, nlambda = 8, tol = 1e-9)
  expect_equal(as.matrix(coef(stored)), as.matrix(coef(fit)), tolerance = 1e-6, ignore_attr = TRUE)
  expect_match(rownames(coef(stored))[3], "rs2")
  expect_equal(predict(stored, prefix, s = fit$lambda[5]), predict(fit, counts, s = fit$lambda[5]), tolerance = 1e-6, ignore_attr = TRUE)
})

test_that("columns of y are tasks, and NA is not observed", {
  skip_without_python()
  set.seed(7)
  x <- matrix(rnorm(40 * 4), 40)
  y <- x[, 1:2] + rnorm(80)
  dimnames(y) <- list(NULL, c("left", "right"))
  y[1:5, 2] <- NA
  fit <- tasksieve(x, y, lambda = 0.1, tol = 1e-9)
  kept <- list(left = 1:40, right = 6:40)
  listed <- tasksieve(lapply(kept, function(i) x[i, ]), list(y[, 1], y[6:40, 2]), lambda = 0.1, tol = 1e-9, standardize = TRUE)
  expect_equal(names(coef(fit)), c("left", "right"))
  expect_equal(as.matrix(coef(fit)$right), as.matrix(coef(listed)$right), tolerance = 0.05)
  signs <- (y > 0) + 0
  expect_equal(names(coef(tasksieve(x, signs, family = "binomial", nlambda = 3))), c("left", "right"))
})

test_that("several tasks with several classes, and ordered ones", {
  skip_without_python()
  d <- sites()
  kind <- factor(c("low", "mid", "high")[1 + (d$y > -0.5) + (d$y > 0.5)], c("low", "mid", "high"))
  fit <- tasksieve(d$x, kind, d$site, family = "multinomial", nlambda = 8, lambda.min.ratio = 0.02)
  expect_equal(names(coef(fit)), fit$tasks)
  expect_equal(names(coef(fit)$Bern), levels(kind))
  shares <- predict(fit, d$x, s = 0.02, task = d$site, type = "response")
  expect_equal(dim(shares), c(90, 3, 1))
  expect_equal(rowSums(shares[, , 1]), rep(1, 90))
  found <- predict(fit, d$x, s = 0.02, task = d$site, type = "class")[, 1]
  expect_gt(mean(found == kind), 0.5)
  expect_equal(found, levels(kind)[apply(shares[, , 1], 1, which.max)])
  ordered <- tasksieve(d$x, kind, d$site, family = "ordinal", nlambda = 8)
  chances <- predict(ordered, d$x, s = 0.02, task = d$site, type = "response")
  z <- predict(ordered, d$x, s = 0.02, task = d$site)[, 1]
  bern <- which(d$site == "Bern")
  expect_equal(chances[bern, "low", 1], plogis(coef(ordered, s = 0.02)$Bern["low|mid", 1] - z[bern]), ignore_attr = TRUE)
  expect_equal(rowSums(chances[, , 1]), rep(1, 90))
})
