// Newton's systems from Gram matrices: where tasks have more rows than there are features in play.
#pragma once
#include "common.hpp"

namespace tasksieve {

// gram (matrices x total x total) holds X_t' X_t of `columns`; those of the first `known` columns are there already.
// `matrices` is the number of tasks, or 1 where all tasks share the rows of x.
void extend_grams(const double *x, index_t rows, const index_t *offsets, index_t matrices, const index_t *columns,
                  index_t known, index_t total, index_t capacity, int threads, double *gram);

// Per task the factor of B_t = I + D G_t D with D = diag(sqrt a) (lower, column-major), and w_t = D B_t^-1 D c_t: the
// ridge fit with penalties 1/a. `slots` picks the rows of G; c and w are count x tasks. False if a factor failed.
bool gram_factor(const double *gram, index_t matrices, index_t capacity, const index_t *slots, const double *a,
                 index_t count, const double *c, index_t tasks, int threads, double *factors, double *w);

// M = sum_t (u_t u_t') o X_t' K_t^-1 X_t, K_t = I + X_t D^2 X_t', from D^-1 (I - B_t^-1) D^-1; all a > 0. Single
// precision: M only shapes the Newton direction. False if an inverse failed.
bool gram_normal(const double *factors, index_t matrices, const double *a, const double *u, index_t count,
                 index_t tasks, int threads, float *m);

}  // namespace tasksieve
