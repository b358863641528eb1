// Passes over the data: the only kernels that read the big matrix.
#pragma once
#include "common.hpp"

namespace tasksieve {

// out[k, t] = sum_i x[i, j_k]^power r[i] over the rows i of task t; X column-major, rows sorted by task.
template <class T>
void segment_products(const T *x, index_t rows, const index_t *columns, index_t count, const double *r,
                      const index_t *offsets, index_t tasks, bool squares, int threads, double *out);

// out[k, t] = sum_i x[i, j_k]^power R[i, t]: one matrix shared by all tasks, R column-major.
template <class T>
void shared_products(const T *x, index_t rows, const index_t *columns, index_t count, const double *r, index_t tasks,
                     bool squares, int threads, double *out);

// The same two for a compressed-sparse-column matrix. Stacked: task_of[i]; shared: task_of null, R row-major.
template <class T, class I>
void sparse_products(const T *data, const I *indices, const I *indptr, const index_t *columns, index_t count,
                     const double *r, const index_t *task_of, index_t tasks, bool squares, int threads, double *out);

// out[t, j] += sum_i x[i, j]^power r[i] over a block of row-major rows: files that are stored by rows.
template <class T>
void row_products(const T *x, index_t rows, index_t features, const double *r, const index_t *task_of, bool squares,
                  int threads, double *out);

// Bounds on every row of X'v for v_t = sum_m coef[m, t] anchor_m,t + remainder, maximised over a ball around v:
// see the NumPy twin for the formulas. `chosen` (or null): the features in question, `count` of them. `moments` (or
// null): per feature ||b||^2, the inner product of b with the first anchor, and the bound on what the remainder adds.
void anchored_ratios(const float *const *anchors, index_t n_anchors, const double *coef, const float *norms,
                     index_t norm_stride, const double *remainder, double shared_remainder, double radius,
                     const double *group, const double *l1, bool positive, const index_t *chosen, index_t count,
                     index_t tasks, int threads, double *estimate, double *upper, double *moments);

}  // namespace tasksieve
