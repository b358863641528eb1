#include "vectors.hpp"

namespace tasksieve {

TASKSIEVE_MULTIVERSION double dot(const double *a, const double *b, index_t n) { return inline_dot(a, b, n); }

TASKSIEVE_MULTIVERSION void axpy(double factor, const double *x, index_t n, double *y) { inline_axpy(factor, x, n, y); }

TASKSIEVE_MULTIVERSION void add_scaled(const double *a, const double *b, double factor, index_t n, double *out) {
#pragma omp simd
    for (index_t i = 0; i < n; ++i) out[i] = a[i] + factor * b[i];
}

}  // namespace tasksieve
