#' Sparse regression for one task or several, each value with its certificate
#'
#' Follows a regularisation path, as `glmnet()` does, for several tasks at once: features are selected for all tasks
#' together, with coefficients of their own in each. With one task it is the problem of glmnet, and so is its solution.
#'
#' With tasks \eqn{t}, \eqn{\bar n} the mean number of rows of a task, and \eqn{f} the loss of the family,
#' \deqn{\frac1{\bar n} \sum_i f(y_i, x_i w_{t(i)} + b_{t(i)} + o_i) + \lambda \Bigl(\alpha \sum_j \lVert W_j \rVert_2 +
#' \frac{1 - \alpha}{2} \lVert W \rVert_F^2\Bigr)}{(1/n) sum_i f(y_i, x_i w + b) + lambda (alpha sum_j |W_j| + (1 - alpha)/2
#' |W|^2)}
#' where \eqn{W_j} holds the coefficients of feature \eqn{j} in all tasks.
#'
#' **`lambda` is glmnet's.** Columns are standardised by default (by their standard deviations with \eqn{1/n}, within each task) and
#' coefficients come back in the units of `x`. Weights count relative to their sum. For `family = "gaussian"` and
#' `alpha < 1` the ridge is divided by the standard deviation of `y` (within tasks), which is what glmnet does by bringing `y` to unit variance.
#' The path does not end early where little more is explained, as glmnet's does: all of `lambda` is solved.
#'
#' **Differences from glmnet.** `tol` is not `thresh`: it bounds the duality gap relative to the objective of the empty model, and the gap is a proof
#' of how far the optimum can be at most. `alpha = 0` (a ridge alone) is refused. `lower.limits` is `-Inf` or 0. With
#' `alpha < 1`, a `penalty.factor` may only be 0 or one other value; of multinomial models none may be 0. With `intercept = FALSE` nothing is centred, and columns are scaled by their root mean
#' square (glmnet: by their standard deviation); with `standardize = FALSE` both agree. Counts or shares as `y` of a binomial model are refused.
#'
#' `x` may be
#' - a matrix: its columns are read where they lie, without a copy (of integers a copy as numbers is made);
#' - a sparse matrix of Matrix (`dgCMatrix`), or a list of matrices, one per task, with `y` a list of as many;
#' - a data frame, with `y` the name of a column, and `task` that of another;
#' - a path: a NumPy file (`.npy`) or the descriptor (`.desc`) of a file-backed `big.matrix`, read as a memory map; or the prefix of PLINK
#'   files, whose missing calls are means of their task.
#'
#' `y` is a vector of numbers, a factor (`"binomial"`, `"multinomial"`; `"ordinal"` in the order of its levels), a matrix with a column for each task or
#' response (`NA`: not observed), or a `Surv` object (`"cox"`): right-censored or with entry times, with
#' strata by glmnet's `stratifySurv()`. Of two classes the second level is the one whose log-odds are modelled, as in glmnet.
#'
#' An interrupt (Ctrl-C, Esc) ends a path at the value it has reached; what is solved is returned, with a warning.
#'
#' @param x The features: see Details; or a formula.
#' @param y The responses: see Details.
#' @param task The task of each row (any labels); `NULL`: one task, or those of a list or of the columns of `y`. With a data frame the name of
#'   a column, or a formula `~ site`.
#' @param family `"gaussian"`, `"binomial"`, `"poisson"`, `"multinomial"`, `"cox"`, `"ordinal"` (proportional odds), `"mgaussian"`, `"gamma"` (logarithmic
#'   link), `"huber"` or `"quantile"` (the median).
#' @param penalty `NULL`: the norm above, `"l21"`. `"l11"`: tasks select for themselves. Others of the
#'   Python package: `"linf"`, `"sparse_group"`, `"dirty"`, `"owl"`.
#' @param alpha The share of the norm, as in glmnet, above 0 and at most 1.
#' @param lambda Strengths of the penalty; by default `nlambda` values from the smallest one that selects nothing down to `lambda.min.ratio` times
#'   that.
#' @param nlambda,lambda.min.ratio As in glmnet: 100, and 1e-4 where a task has more rows than columns (on average), else 0.01.
#' @param weights Weights of the rows; 0 leaves a row out.
#' @param offset Added to the linear prediction; then also needed as `newoffset` in [predict()][predict.tasksieve].
#' @param standardize,intercept As in glmnet. Cox and ordinal models have no intercept.
#' @param penalty.factor Factors of the penalty for each column, brought to mean 1; 0: never penalised.
#' @param lower.limits `0`: no coefficient below 0.
#' @param type.multinomial `"ungrouped"` (glmnet's default, and here that of one task) or `"grouped"` (here that of several).
#' @param ties Of Cox models: `"breslow"`, as glmnet, or `"efron"`.
#' @param tol The largest relative duality gap.
#' @param maxit Iterations at a value, at most.
#' @param task.weights Weights of the tasks: `"balanced"` counts each once, however many rows it has.
#' @param task.graph,graph.strength A matrix of weights between tasks, or `"chain"`: neighbours are drawn together.
#' @param threads Threads of the kernels; by default all processors.
#' @param data,na.action With a formula: the data frame, and what to do about missing values.
#' @param ... Further arguments of the default method; others are refused.
#'
#' @return An object of class `"tasksieve"`: a list with
#' \item{lambda}{the values solved, decreasing}
#' \item{a0, beta}{intercepts and coefficients as glmnet has them: of one task a vector and a `dgCMatrix` (columns x values), of
#'   several a matrix and a list of such by task, of classes a list of those}
#' \item{df}{number of features selected at each value}
#' \item{dev.ratio, nulldev}{as in glmnet: the part of the deviance that is explained, and the deviance of intercepts alone, of all
#'   tasks together ([deviance()][deviance.tasksieve])}
#' \item{objective, gap, relative.gap}{the objective, and how far it is above the optimum at most: a proof}
#' \item{converged, status}{whether the gap came under `tol`}
#' \item{tasks, classnames, nobs, dim, offset, call}{what the names say}
#' @seealso [cv.tasksieve()], [coef.tasksieve()], [predict.tasksieve()], [plot.tasksieve()], [certificate()], [stability()].
#' @export
#' @examplesIf tasksieve_available()
#' set.seed(1)
#' x <- matrix(rnorm(90 * 30), 90)
#' site <- rep(c("Bern", "Oslo", "Rome"), each = 30)
#' y <- x[, 1] * c(1, 2, -1)[factor(site)] + rnorm(90)
#' fit <- tasksieve(x, y, task = site)
#' fit
#' coef(fit, s = 0.5)$Oslo[1:4, ]
#' predict(fit, x[1:3, ], task = site[1:3], s = 0.5)
tasksieve <- function(x, ...) {
  UseMethod("tasksieve")
}

#' @rdname tasksieve
#' @export
tasksieve.default <- function(x, y, task = NULL,
                              family = c(
                                "gaussian", "binomial", "poisson", "multinomial", "cox", "ordinal", "mgaussian",
                                "gamma", "huber", "quantile"
                              ),
                              penalty = NULL, alpha = 1, lambda = NULL, nlambda = 100, lambda.min.ratio = NULL,
                              weights = NULL, offset = NULL, standardize = TRUE, intercept = TRUE,
                              penalty.factor = NULL, lower.limits = -Inf, type.multinomial = NULL, ties = "breslow",
                              tol = 1e-6, maxit = 10000, task.weights = NULL, task.graph = NULL, graph.strength = 1,
                              threads = NULL, ...) {
  refuse_others(...)
  problem <- read_problem(
    x, y, task, family, weights, offset,
    penalty = penalty, alpha = alpha, standardize = standardize, intercept = intercept,
    penalty.factor = penalty.factor, lower.limits = lower.limits, type.multinomial = type.multinomial, ties = ties,
    tol = tol, maxit = maxit, task.weights = task.weights, task.graph = task.graph, graph.strength = graph.strength,
    threads = threads
  )
  grid <- read_grid(lambda, nlambda, lambda.min.ratio, problem$data, problem$model$unit)
  found <- ask("path", problem$model$loss, problem$model$options, problem$data$python, grid)
  as_fit(found, problem, called(match.call(), "tasksieve"))
}

# The call as it was written: the generic, not its method.
called <- function(call, name) {
  call[[1]] <- as.name(name)
  call
}

refuse_others <- function(...) {
  others <- names(list(...))
  if (...length()) {
    others <- if (is.null(others)) "without a name" else paste(others[nzchar(others)], collapse = ", ")
    give_up("there is no such argument: ", others, ".")
  }
}

# Data and model together, and the arguments of the model for later.
read_problem <- function(x, y, task, family, weights, offset, ...) {
  family <- family_of(family)
  data <- read_data(x, y, task, weights, offset, family)
  list(data = data, family = family, model = read_model(data, family, ...), arguments = list(...))
}

# The object of a path that Python has solved.
as_fit <- function(found, problem, call) {
  data <- problem$data
  family <- problem$family
  flat <- function(values) as.vector(values)
  lambda <- flat(found$strength) / problem$model$unit
  steps <- paste0("s", seq_along(lambda) - 1)
  tasks <- if (is.null(data$tasks)) unlist(found$tasks) else data$tasks
  kind <- if (is.null(found$kind)) NULL else data$classes[flat(found$kind) + 1]
  outputs <- list(task = as.integer(flat(found$task)) + 1L, class = kind)
  columns <- lapply(found$rows, function(row) {
    new("dgCMatrix",
      i = as.integer(row$i), p = as.integer(row$p), x = as.double(row$x),
      Dim = c(as.integer(found$n_features), length(lambda)), Dimnames = list(data$names, steps)
    )
  })
  a0 <- matrix(as.double(found$intercept), length(columns), dimnames = list(NULL, steps))
  if (length(data$classes) > 2) {
    a0 <- centred(a0, outputs$task)
  }
  fit <- list(
    call = call, family = family$name, lambda = lambda,
    a0 = if (family$outcome != "survival" && family$name != "ordinal") shaped_intercepts(a0, outputs, tasks),
    beta = shaped(columns, outputs, tasks),
    thresholds = named_thresholds(found$thresholds, tasks, data$classes, steps),
    df = as.integer(flat(found$selected)),
    objective = flat(found$objective), gap = flat(found$gap), relative.gap = flat(found$relative_gap),
    null.objective = found$null, dev.ratio = flat(found$explained), nulldev = 2 * mean_size(data, tasks) * found$half_deviance,
    converged = flat(found$converged), status = unlist(found$status),
    tasks = tasks, classnames = data$classes, outputs = outputs, form = data$form,
    nobs = sum(data$sizes), dim = c(data$n_features, length(lambda)), offset = !is.null(data$offset),
    passes = found$passes, interrupted = found$interrupted, solver = found$solver,
    unit = problem$model$unit, arguments = problem$arguments, path = found$path
  )
  structure(fit, class = "tasksieve")
}

# The mean number of rows of a task, which objectives are divided by: rows count with their weights, missing y do not.
mean_size <- function(data, tasks) {
  weights <- if (is.null(data$weights)) lapply(data$sizes, rep, x = 1) else data$weights
  weights <- if (is.list(weights)) weights else list(weights)
  seen <- if (is.null(data$plain)) weights else Map(function(w, y) w * !is.na(y), weights, data$plain)
  sum(unlist(seen)) / length(tasks)
}

# Of several classes only differences matter; glmnet brings intercepts to mean 0.
centred <- function(a0, task) {
  for (t in unique(task)) {
    own <- task == t
    a0[own, ] <- sweep(a0[own, , drop = FALSE], 2, colMeans(a0[own, , drop = FALSE]))
  }
  a0
}

# One thing for each row of coefficients, in the form of glmnet: itself, a list by task, by class, or by task and class.
shaped <- function(items, outputs, tasks) {
  if (is.null(outputs$class)) {
    return(if (length(tasks) == 1) items[[1]] else setNames(items, tasks))
  }
  by_task <- lapply(seq_along(tasks), function(t) {
    own <- outputs$task == t
    setNames(items[own], outputs$class[own])
  })
  if (length(tasks) == 1) by_task[[1]] else setNames(by_task, tasks)
}

shaped_intercepts <- function(a0, outputs, tasks) {
  if (nrow(a0) == 1) {
    return(setNames(a0[1, ], colnames(a0)))
  }
  labels <- if (is.null(outputs$class)) tasks else outputs$class
  if (!is.null(outputs$class) && length(tasks) > 1) {
    labels <- paste(tasks[outputs$task], outputs$class, sep = ":")
  }
  rownames(a0) <- labels
  a0
}

# Of ordered classes: a matrix (thresholds x values) by task.
named_thresholds <- function(found, tasks, classes, steps) {
  if (is.null(found)) {
    return(NULL)
  }
  between <- paste(classes[-length(classes)], classes[-1], sep = "|")
  by_task <- lapply(seq_along(tasks), function(t) {
    values <- vapply(found, function(value) as.double(value[[t]]), double(length(between)))
    matrix(values, length(between), dimnames = list(between, steps))
  })
  if (length(tasks) == 1) by_task[[1]] else setNames(by_task, tasks)
}

# Coefficients and intercepts row by row, whatever their form.
rows_of <- function(fit) {
  flat <- function(item) if (is.list(item)) unlist(lapply(item, flat), recursive = FALSE, use.names = FALSE) else list(item)
  beta <- flat(fit$beta)
  a0 <- if (is.null(fit$a0)) matrix(0, length(beta), length(fit$lambda)) else matrix(fit$a0, length(beta))
  list(beta = beta, a0 = a0, thresholds = if (is.null(fit$thresholds)) NULL else flat(fit$thresholds))
}
