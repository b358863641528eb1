// Cox's partial likelihood with nested risk sets: rows of a block (one stratum of one task) in the order of their times,
// the deaths of a time before those who are censored there.
#pragma once

#include "common.hpp"

namespace tasksieve {

// Rows of blocks, one block after the other.
struct RiskRows {
    index_t blocks;
    const index_t *starts;  // blocks + 1
    const double *weights;  // w = s exp(z), in units of the block
    const index_t *tie;     // 0, or the number of the tied deaths that a row is one of
};

// The Cholesky factor L of the second derivative H, and the solution of L right = residual, in O(rows).
//
// H_ii = mean_i - w_i^2 near_i, and H_ij = -w_i w_j c for a later row i, where c is near_j if both are tied deaths of
// one time, else far_j. So L_ij = -w_i beside_j within such deaths, -w_i below_j elsewhere; `diagonal` is L_jj.
void risk_factor(const RiskRows &rows, const double *mean, const double *near_, const double *far_,
                 const double *residual, double *diagonal, double *below, double *beside, double *right);

// L' x of columns, out[row[i], k] for x[source[i], columns[k]] scale[i], and its squared norms by task, in O(rows) each.
// Other rows of out are left alone. T is double or float; the norms are those of the numbers that were written.
template <class T>
void risk_columns(const RiskRows &rows, const index_t *task, index_t tasks, const double *diagonal, const double *below,
                  const double *beside, const double *x, index_t x_rows, const index_t *columns, index_t count,
                  const index_t *source, const index_t *row, const double *scale, int threads, T *out,
                  index_t out_rows, double *squares);

// Sums of the divergences KL(x || y) = x log(x/y) - x + y, of what an error of the logarithms is multiplied by,
// |y - x| + x |log(y/x)|, and of 2 x (1 + |log(y/x)|) + y, which bounds the second derivative. log_y may be null.
struct DivergenceSums {
    double value, first, second;
};
DivergenceSums divergence_sums(const double *x, const double *y, const double *log_y, index_t count);

}  // namespace tasksieve
