// Loops over long vectors, compiled for every processor.
#pragma once
#include "common.hpp"

namespace tasksieve {

// The same inside functions that are compiled for every processor themselves.
template <class T>
TASKSIEVE_INLINE double inline_dot(const T *a, const double *b, index_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

template <class T>
TASKSIEVE_INLINE void inline_axpy(double factor, const T *x, index_t n, double *y) {
#pragma omp simd
    for (index_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// y += factor x, and then <a, y>.
template <class T>
TASKSIEVE_INLINE double inline_axpy_dot(double factor, const T *x, const T *a, index_t n, double *y) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t i = 0; i < n; ++i) {
        const double value = y[i] + factor * x[i];
        y[i] = value;
        sum += a[i] * value;
    }
    return sum;
}

double dot(const double *a, const double *b, index_t n);

// y += factor x
void axpy(double factor, const double *x, index_t n, double *y);

// out = a + factor b
void add_scaled(const double *a, const double *b, double factor, index_t n, double *out);

}  // namespace tasksieve
