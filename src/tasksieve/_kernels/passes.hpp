// Passes over the data: the only kernels that read the big matrix.
#pragma once
#include "compressed.hpp"

namespace tasksieve {

// out[k, t] = sum_i x[i, j_k]^power r[i] over the rows i of task t; X column-major, rows sorted by task.
template <class T>
void segment_products(const T *x, index_t rows, const index_t *columns, index_t count, const double *r,
                      const index_t *offsets, index_t tasks, bool squares, int threads, double *out);

// out[k, t] = sum_i x[i, j_k]^power R[i, t]: one matrix shared by all tasks, R column-major.
template <class T>
void shared_products(const T *x, index_t rows, const index_t *columns, index_t count, const double *r, index_t tasks,
                     bool squares, int threads, double *out);

// Several vectors in one reading of X: out[k][j, t] = sum_i x[i, j]^power r[k][i] over the rows i of task t, where the
// first `squares` vectors multiply squared entries.
template <class T>
void many_products(const T *x, index_t rows, index_t count, const double *const *r, index_t squares, index_t vectors,
                   const index_t *offsets, index_t tasks, int threads, double *const *out);

// Segment and shared products of several vectors for a compressed-sparse-column matrix; R is row-major. Stacked:
// task_of[i], and out has a row of `vectors` x tasks; shared: task_of null, and a row of `vectors`.
template <class T, class I>
void sparse_products(const Compressed<T, I> &x, const index_t *columns, index_t count, const double *r, index_t vectors,
                     const index_t *task_of, index_t tasks, bool squares, int threads, double *out);

// out[k][t, j] += sum_i x[i, j]^power r[k][i], t = task_of[k][i], over a block of row-major rows: files that are stored
// by rows. The first `squares` vectors multiply squared entries.
template <class T>
void row_products(const T *x, index_t rows, index_t features, const double *const *r, index_t squares, index_t vectors,
                  const index_t *const *task_of, int threads, double *const *out);

}  // namespace tasksieve
