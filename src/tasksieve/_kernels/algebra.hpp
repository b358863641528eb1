// Dense algebra on packed columns, split over tasks or column blocks.
#pragma once
#include "common.hpp"

namespace tasksieve {

// Per task: K_t = I + sum_k a_k x_kt x_kt', its Cholesky factor (lower, packed block after block) and K_t^-1 y_t.
// With `diagonal` (one number a task) K_t has diagonal_t I in place of I. Returns false if a factorisation failed.
bool factor_tasks(const double *x, index_t rows, const index_t *offsets, index_t tasks, const index_t *columns,
                  const double *a, index_t count, const double *y, int threads, double *factors, double *r,
                  const double *diagonal = nullptr);

// The same for one matrix that all tasks share: the sum is formed once, and each task adds its own diagonal.
bool factor_shared_shifted(const double *x, index_t rows, const index_t *columns, const double *a, index_t count,
                           const double *diagonal, const double *y, index_t tasks, int threads, double *factors,
                           double *r);

// Z[:, k] = L_t^-1 (x_kt u_kt), stacked over tasks (rows x count, column-major). Single precision: Z only shapes the
// Newton system, whose solution is corrected by the next step; gradients and certificates never see it. With `shared`
// all tasks have the same columns, but factors of their own; nearly singular factors need double precision.
template <class Real>
void whiten_tasks(const double *x, index_t rows, const index_t *offsets, index_t tasks, const index_t *columns,
                  const double *u, index_t count, const double *factors, int threads, Real *z, bool shared = false);

// One matrix for all tasks: K, its factor, R = K^-1 Y (rows x tasks).
bool factor_shared(const double *x, index_t rows, const index_t *columns, const double *a, index_t count,
                   const double *y, index_t tasks, int threads, double *factor, double *r);
void whiten_shared(const double *x, index_t rows, const index_t *columns, index_t count, const double *factor,
                   int threads, float *z);

// M = Z'Z (count x count, both triangles); with u (count x tasks) its entrywise product with U U'.
void normal_matrix(const float *z, index_t rows, index_t count, const float *u, index_t tasks, int threads, float *m);

// out = M v without forming M.
void normal_product(const float *z, index_t rows, index_t count, const float *u, index_t tasks, const float *v,
                    int threads, float *out);

// out (flat) = X_columns W per task; W is count x tasks, row-major.
void combine(const double *x, index_t rows, const index_t *offsets, index_t tasks, bool shared,
             const index_t *columns, index_t count, const double *w, int threads, double *out);

// out[:, k] = (I - B B') (w o x_k) task by task, and its squared norms h (count x tasks). B: n_basis flat vectors,
// orthonormal within each task. With `shared` the one matrix is unrolled, since w differs between tasks.
void reweight(const double *x, index_t rows, const index_t *offsets, index_t tasks, bool shared,
              const index_t *columns, index_t count, const double *w, const double *basis, index_t n_basis,
              int threads, double *out, double *h);

}  // namespace tasksieve
