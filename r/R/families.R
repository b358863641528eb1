# The families: the loss in Python, what y is, and from a linear prediction to a response.

softmax <- function(z) {
  # the second dimension is that of the classes
  top <- apply(z, c(1, 3), max)
  e <- exp(sweep(z, c(1, 3), top))
  sweep(e, c(1, 3), apply(e, c(1, 3), sum), "/")
}

families <- list(
  gaussian = list(loss = "squared", outcome = "numbers", mean = identity),
  mgaussian = list(loss = "squared", outcome = "columns", mean = identity),
  binomial = list(loss = "logistic", outcome = "classes", mean = stats::plogis),
  multinomial = list(loss = "logistic", outcome = "classes", mean = softmax),
  poisson = list(loss = "poisson", outcome = "numbers", mean = exp),
  gamma = list(loss = "gamma", outcome = "numbers", mean = exp),
  cox = list(loss = "cox", outcome = "survival", mean = exp),
  ordinal = list(loss = "ordinal", outcome = "classes", mean = NULL),
  huber = list(loss = "huber", outcome = "numbers", mean = identity),
  quantile = list(loss = "quantile", outcome = "numbers", mean = identity)
)

family_of <- function(name) {
  if (!is.character(name)) {
    give_up("family must be a name: ", toString(dQuote(names(families), FALSE)), ".")
  }
  name <- match.arg(name[1], names(families))
  c(list(name = name), families[[name]])
}
