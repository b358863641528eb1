// Bounds on the correlations of all features from those of a few past vectors, the anchors (certificate.py).
#pragma once
#include "common.hpp"

namespace tasksieve {

// A combination v_t = sum_m coef[m, t] anchor_m,t + remainder of past vectors, the ball around it, and the thresholds.
struct Anchored {
    const float *const *anchors = nullptr;  // correlations, features x tasks each
    index_t n_anchors = 0, tasks = 0;
    const double *coef = nullptr;       // n_anchors x tasks
    const float *norms = nullptr;       // of the columns, features x tasks
    bool one_norm = false;              // one matrix for all tasks: one norm a feature
    const double *remainder = nullptr;  // what bounds the remainder: of each task, or (one norm) of all
    double shared_remainder = 0.0, radius = 0.0;
    const double *group = nullptr, *l1 = nullptr;  // l1 may be null
    bool positive = false;
    const index_t *chosen = nullptr;  // the features in question; null: all
    double *estimate = nullptr, *upper = nullptr;
    // Per feature ||b||^2, the inner product of b with the first anchor, and the bound on what the remainder adds; or null.
    double *moments = nullptr;
};

// Bounds on every row of X'v, maximised over the ball: see the NumPy twin for the formulas. `count` features.
void anchored_ratios(const Anchored &is, index_t count, int threads);

// A vector in terms of anchors, task by task: (about) its best combination of them, and what that leaves.
struct Expressed {
    const double *vectors = nullptr;  // the anchors, n_anchors x samples
    const double *gram = nullptr;     // their inner products, tasks x n_anchors x n_anchors
    index_t n_anchors = 0;
    const index_t *offsets = nullptr;
    index_t tasks = 0;
    // What products of the anchors may be off: relative to the parts used, to the vector, and to the largest anchors.
    double of_parts = 0.0, of_vector = 0.0, of_largest = 0.0;
    double *coef = nullptr;       // n_anchors x tasks
    double *rest = nullptr;       // the vector less the combination
    double *errors = nullptr;     // by task: those of the products, for a column of norm 1
    double *remainder = nullptr;  // by task: the length of the rest, at most, and the errors
};

void express(const Expressed &is, const double *vector);

// Upper bounds of `anchored_ratios` without another look at the anchors, for a ball around alpha v + beta a, a the first
// anchor: per feature three moments of v (see above), those of a itself, and the largest column norm.
void moment_bounds(const double *moments, const double *first, const double *longest, const double *group,
                   index_t count, double alpha, double beta, double first_unit, double radius, double rounding,
                   double *upper);

// out[j] = <a_j, b_j>, rows of single numbers, summed in double precision.
void row_inner_products(const float *a, const float *b, index_t count, index_t tasks, int threads, float *out);

// Bounds of `anchored_ratios` for the same combination of anchors in every task, from the inner products of their rows
// alone; the plain group penalty, one norm a task.
struct Joint {
    const float *const *inner = nullptr;  // of anchors m and l <= m, at m (m + 1) / 2 + l
    index_t n_anchors = 0, tasks = 0;
    const double *coef = nullptr;      // one an anchor
    const float *norms = nullptr;      // of the columns, features x tasks
    const double *longest = nullptr;   // the largest norm of each feature
    const double *remainder = nullptr; // by task
    double radius = 0.0;
    const double *group = nullptr;
    double rounding = 0.0, smallest = 0.0;  // of inner products: relative to their factors' sizes, and absolute
    double *estimate = nullptr, *upper = nullptr;
};

void joint_bounds(const Joint &is, index_t count, int threads);

// Largest magnitude; not a number where one of the values is none.
double largest_magnitude(const double *values, index_t count, int threads);

// out = max(factor * values, least), in single precision.
void store_single(const double *values, index_t count, double factor, float least, int threads, float *out);

}  // namespace tasksieve
