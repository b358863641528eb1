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

// What a path begins with, in one reading of X: squares[j, t] = sum_i weights[i] x[i, j]^2 and, for each of the vectors
// r_k, out[k][j, t] = sum_i x[i, j] r_k[i], over the rows i of task t.
template <class T>
void first_products(const T *x, index_t rows, index_t count, const double *weights, const double *r, index_t vectors,
                    const index_t *offsets, index_t tasks, int threads, double *squares, double *const *out);

// Segment and shared products for a compressed-sparse-column matrix. Stacked: task_of[i]; shared: task_of null, R row-major.
template <class T, class I>
void sparse_products(const Compressed<T, I> &x, const index_t *columns, index_t count, const double *r,
                     const index_t *task_of, index_t tasks, bool squares, int threads, double *out);

// out[t, j] += sum_i x[i, j]^power r[i] over a block of row-major rows: files that are stored by rows.
template <class T>
void row_products(const T *x, index_t rows, index_t features, const double *r, const index_t *task_of, bool squares,
                  int threads, double *out);

}  // namespace tasksieve
