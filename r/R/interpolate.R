# Values of lambda between those solved: coefficients are taken linearly, as glmnet does.

# For each s the two values of the path around it, and the share of the first. Outside the path its ends stand.
between <- function(lambda, s) {
  if (!is.numeric(s) || anyNA(s) || any(s < 0)) {
    give_up("s must be one or more numbers >= 0.")
  }
  if (length(lambda) == 1) {
    return(list(left = rep(1L, length(s)), right = rep(1L, length(s)), share = rep(1, length(s))))
  }
  place <- approx(lambda, seq_along(lambda), pmin(pmax(s, min(lambda)), max(lambda)))$y
  left <- floor(place)
  right <- ceiling(place)
  share <- ifelse(left == right, 1, (pmin(pmax(s, min(lambda)), max(lambda)) - lambda[right]) / (lambda[left] - lambda[right]))
  list(left = left, right = right, share = share)
}

mixed_columns <- function(matrix, at) {
  left <- matrix[, at$left, drop = FALSE]
  right <- matrix[, at$right, drop = FALSE]
  if (is(matrix, "sparseMatrix")) {
    mix <- function(part, share) part %*% Matrix::Diagonal(x = share)
    return(drop0(mix(left, at$share) + mix(right, 1 - at$share)))
  }
  sweep(left, 2, at$share, "*") + sweep(right, 2, 1 - at$share, "*")
}

# The values asked for, and where they lie; by default all of the path.
at_values <- function(fit, s) {
  if (is.null(s)) {
    all <- seq_along(fit$lambda)
    return(list(left = all, right = all, share = rep(1, length(all)), names = paste0("s", all - 1), s = fit$lambda))
  }
  c(between(fit$lambda, s), list(names = paste0("s", seq_along(s)), s = s))
}
