// Bounds on the correlations of all features from those of a few past vectors, the anchors (certificate.py).
#pragma once
#include "common.hpp"

namespace tasksieve {

// Bounds on every row of X'v for v_t = sum_m coef[m, t] anchor_m,t + remainder, maximised over a ball around v:
// see the NumPy twin for the formulas. `chosen` (or null): the features in question, `count` of them. `moments` (or
// null): per feature ||b||^2, the inner product of b with the first anchor, and the bound on what the remainder adds.
void anchored_ratios(const float *const *anchors, index_t n_anchors, const double *coef, const float *norms,
                     index_t norm_stride, const double *remainder, double shared_remainder, double radius,
                     const double *group, const double *l1, bool positive, const index_t *chosen, index_t count,
                     index_t tasks, int threads, double *estimate, double *upper, double *moments);

// Upper bounds of `anchored_ratios` without another look at the anchors, for a ball around alpha v + beta a, a the first
// anchor: per feature three moments of v (see above), those of a itself, and the largest column norm.
void moment_bounds(const double *moments, const double *first, const double *longest, const double *group,
                   index_t count, double alpha, double beta, double first_unit, double radius, double rounding,
                   double *upper);

// Largest magnitude; not a number where one of the values is none.
double largest_magnitude(const double *values, index_t count, int threads);

// out = max(factor * values, least), in single precision.
void store_single(const double *values, index_t count, double factor, float least, int threads, float *out);

}  // namespace tasksieve
