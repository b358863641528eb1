// Dual coordinate descent for graph-regularised tasks (Widmer et al. 2012, with the denominators corrected).
#pragma once
#include <utility>

#include "graph_rows.hpp"

namespace tasksieve {

enum GraphLoss : int { HINGE = 0, SQUARED_HINGE = 1, LOGISTIC = 2, EPSILON = 3, SQUARED_EPSILON = 4 };

// min 1/2 sum_st (I + L)_st <w_s, w_t> + sum_i c_i loss(<w_t(i), x_i>), M = (I + L)^{-1}. Samples are numbered task by
// task; sample i is row row_of[i] of the data (i itself without row_of). With bias > 0 each row has one more feature
// of that size: the last of `width` columns of W.
struct GraphProblem {
    int loss = HINGE;
    double epsilon = 0.0, bias = 0.0;
    index_t tasks = 0, samples = 0, width = 0;
    const index_t *offsets = nullptr;  // tasks + 1
    const index_t *row_of = nullptr;
    const double *y = nullptr, *c = nullptr;
    const double *m = nullptr;  // tasks x tasks
};

struct DescentReport {
    index_t epochs = 0, visits = 0;
    double estimate = 0.0;             // of the duality gap, summed over the last epoch's visits
    double lowest = 0.0, highest = 0.0;  // projected gradients of the last epoch: the shrinking thresholds
};

// What descent moves, and how far it goes.
template <class W>
struct Descent {
    double *beta;
    W *w;                   // tasks x width
    index_t *active;        // from offsets[t] on counts[t] samples of task t, and behind them those that rest at a bound
    index_t *counts;        // go down when samples are found to rest
    const double *squares;  // ||x_r||^2 with the constant feature; null: at every visit, which costs strings nothing
    index_t max_epochs;
    double target, lowest, highest;
    std::uint64_t seed;
};

// Epochs over the active samples until the estimate of the gap is at most `target`.
template <class W>
DescentReport dual_descent(const AnyRows &rows, const GraphProblem &problem, const Descent<W> &descent);

// scores[i] = <w_t(i), x_i> (where w is given) and v_t = sum_{i in t} beta_i x_i (where beta is given).
template <class W>
void graph_pass(const AnyRows &rows, const GraphProblem &problem, const W *w, const double *beta, int threads,
                double *scores, double *v);

// What a certificate needs, in twice the precision and rounded once: scores[i] = <w_t(i), x_i> + intercept[t(i)], the sum
// of the sizes of the products in it, and (where v is given) v_t = sum_{i in t} beta_i x_i. The constant feature is in v,
// but its column of w is not read: the intercepts stand for it. sizes[i] * (u * entries)^2 + 2 u |scores[i]| bounds
// the error of a score.
template <class W>
void measure_rows(const AnyRows &rows, const GraphProblem &problem, const W *w, const double *intercept,
                  const double *beta, int threads, double *scores, double *sizes, double *v);

struct LossSums {
    double loss = 0.0;   // sum of c l(z), the true loss
    double terms = 0.0;  // sum of the Fenchel-Young terms c l(z) + c l*(-beta / c) + beta z >= 0: the gap where W = M V
};

LossSums fenchel_sums(const GraphProblem &problem, const double *scores, const double *beta);

struct TableSquares {  // of a table of single precision: ||V||^2 and ||W||^2, each of which was rounded once
    double v = 0.0, w = 0.0;
};

// w = M V with v_t = sum_{i in t} beta_i x_i, in place: no second table is needed.
template <class W>
TableSquares rebuild_table(const AnyRows &rows, const GraphProblem &problem, const double *beta, int threads, W *w);

// beta_i = -c l_mu'(z_i) and curvature c l_mu''(z_i) of the loss whose kinks are rounded over a width mu.
LossSums smoothed_loss(const GraphProblem &problem, const double *scores, double mu, int threads, double *beta,
                       double *curvature);

// First and second derivative of sum_i c_i l_mu(z_i + step q_i) in the step.
std::pair<double, double> smoothed_slope(const GraphProblem &problem, const double *scores, const double *direction,
                                         double step, double mu, int threads);

}  // namespace tasksieve
