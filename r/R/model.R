# The arguments of a model, checked, as the estimator in Python takes them; and the units of lambda.

# `loss` and `options` are Python's; strength = lambda * `unit`.
read_model <- function(data, family, penalty = NULL, alpha = 1, standardize = TRUE, intercept = TRUE,
                       penalty.factor = NULL, lower.limits = -Inf, type.multinomial = NULL, ties = "breslow",
                       tol = 1e-6, maxit = 10000, task.weights = NULL, task.graph = NULL, graph.strength = 1,
                       threads = NULL) {
  if (!is.numeric(alpha) || length(alpha) != 1 || is.na(alpha) || alpha <= 0 || alpha > 1) {
    give_up("alpha must be a number above 0, and at most 1; alpha = 0 selects nothing: use glmnet for a ridge alone.")
  }
  known <- read_factors(penalty.factor, data$n_features, alpha)
  if (family$name == "multinomial" && any(known$weights == 0)) {
    give_up("penalty.factor of 0 is not there for multinomial models: give these columns a small one.")
  }
  options <- list(
    penalty = norm_of(penalty, family, type.multinomial, data),
    ridge = (1 - alpha) / alpha / scale_of_response(data, family, intercept),
    standardize = isTRUE(standardize), fit_intercept = isTRUE(intercept),
    feature_weights = as_array(known$weights), positive = read_limits(lower.limits),
    tol = tol, max_iter = as.integer(maxit),
    task_weights = if (is.numeric(task.weights)) as_array(as.double(task.weights)) else task.weights,
    task_graph = if (is.matrix(task.graph)) view(task.graph) else task.graph,
    graph_strength = graph.strength, n_jobs = if (is.null(threads)) NULL else as.integer(threads)
  )
  options <- options[!vapply(options, is.null, NA)]
  if (family$name == "cox") {
    options$ties <- match.arg(ties, c("breslow", "efron"))
  }
  list(loss = family$loss, options = options, unit = alpha * known$factor)
}

# glmnet works on y of unit variance: its ridge is divided by that standard deviation. With several tasks it is that
# within them.
scale_of_response <- function(data, family, intercept) {
  if (family$name != "gaussian" || data$form == "columns") {
    return(1)
  }
  of <- function(values) if (data$listed) values else list(values)
  y <- data$plain
  for (t in seq_along(y)) {
    if (!is.null(data$offset)) y[[t]] <- y[[t]] - of(data$offset)[[t]]
  }
  w <- if (is.null(data$weights)) lapply(y, function(own) rep(1, length(own))) else of(data$weights)
  group <- if (is.null(data$task)) lapply(seq_along(y), function(t) rep(t, length(y[[t]]))) else list(data$task)
  y <- unlist(y, use.names = FALSE)
  w <- unlist(w, use.names = FALSE) * !is.na(y)
  y[is.na(y)] <- 0
  group <- as.integer(factor(unlist(group, use.names = FALSE)))
  if (isTRUE(intercept)) {
    y <- y - (rowsum(w * y, group) / pmax(rowsum(w, group), .Machine$double.xmin))[group]
  }
  found <- sqrt(sum(w * y^2) / sum(w))
  if (is.finite(found) && found > 0) found else 1
}

norm_of <- function(penalty, family, type.multinomial, data) {
  if (family$name != "multinomial") {
    if (!is.null(type.multinomial)) {
      give_up("type.multinomial is for family = \"multinomial\".")
    }
    return(if (is.null(penalty)) "l21" else penalty)
  }
  if (!is.null(penalty) && !is.null(type.multinomial)) {
    give_up("penalty and type.multinomial say the same: give one of them.")
  }
  if (!is.null(penalty)) {
    return(penalty)
  }
  alone <- data$form == "one"
  type <- match.arg(type.multinomial, if (alone) c("ungrouped", "grouped") else c("grouped", "ungrouped"))
  if (type == "grouped") "l21" else "l11"
}

# As glmnet: factors are brought to mean 1. The ridge here is the same for all features that are penalised.
read_factors <- function(given, n_features, alpha) {
  if (is.null(given)) {
    return(list(weights = NULL, factor = 1))
  }
  if (length(given) != n_features || anyNA(given) || any(given < 0) || all(given == 0) || any(is.infinite(given))) {
    give_up(
      "penalty.factor must have a finite number >= 0 for each of the ", n_features, " columns, not all 0; ",
      "leave out columns that are to be excluded."
    )
  }
  given <- given * n_features / sum(given)
  level <- max(given)
  if (alpha < 1 && any(given > 0 & abs(given - level) > 1e-12 * level)) {
    give_up(
      "penalty.factor with several values other than 0 needs alpha = 1: the ridge here is the same for all features, ",
      "in glmnet it has the factor, too."
    )
  }
  if (alpha < 1) list(weights = as.double(given > 0), factor = level) else list(weights = given, factor = 1)
}

read_limits <- function(lower.limits) {
  if (all(lower.limits == -Inf)) {
    return(FALSE)
  }
  if (!all(lower.limits == 0)) {
    give_up("lower.limits must be -Inf, or 0 for all features (non-negative coefficients).")
  }
  TRUE
}

# The grid of strengths, for Python. By default glmnet's: 100 values, down to 1e-4 of the largest where rows outnumber
# columns, else 1e-2; rows are those of a task, on average.
read_grid <- function(lambda, nlambda, lambda.min.ratio, data, unit) {
  if (!is.null(lambda)) {
    if (!is.numeric(lambda) || !length(lambda) || anyNA(lambda) || any(lambda <= 0) || any(is.infinite(lambda))) {
      give_up("lambda must be one or more positive numbers.")
    }
    return(list(alphas = as_array(sort(lambda, decreasing = TRUE) * unit)))
  }
  if (is.null(lambda.min.ratio)) {
    n_tasks <- if (is.null(data$task)) length(data$sizes) else length(unique(data$task))
    lambda.min.ratio <- if (sum(data$sizes) / n_tasks < data$n_features) 0.01 else 1e-4
  }
  list(n_alphas = as.integer(nlambda), eps = lambda.min.ratio)
}
