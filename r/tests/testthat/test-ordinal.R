test_that("without a penalty, ordered classes are those of polr", {
  skip_without_python()
  skip_if_not_installed("MASS")
  d <- MASS::housing
  known <- MASS::polr(Sat ~ Infl + Type + Cont, d, weights = d$Freq, control = list(reltol = 1e-15, maxit = 1000))
  ours <- suppressWarnings(tasksieve(Sat ~ Infl + Type + Cont, d, weights = d$Freq, family = "ordinal", lambda = 1e-10, tol = 1e-13))
  found <- coef(ours)
  expect_equal(found[names(coef(known)), 1], coef(known), tolerance = 1e-4)
  expect_equal(found[names(known$zeta), 1], known$zeta, tolerance = 1e-4)
  rows <- d[c(1, 20, 72), ]
  expect_equal(predict(ours, rows, type = "response")[, , 1], predict(known, rows, type = "probs"), tolerance = 1e-4, ignore_attr = TRUE)
  expect_equal(c(predict(ours, rows, type = "class")), as.character(predict(known, rows)))
})
