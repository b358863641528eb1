// Fortran BLAS/LAPACK of the SciPy that is installed: no second BLAS is linked.
#pragma once
#include "common.hpp"

namespace tasksieve {

struct Blas {
    void (*dgemm)(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
                  const int *, const double *, const int *, const double *, double *, const int *) = nullptr;
    void (*sgemm)(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
                  const int *, const float *, const int *, const float *, float *, const int *) = nullptr;
    void (*sgemv)(const char *, const int *, const int *, const float *, const float *, const int *, const float *,
                  const int *, const float *, float *, const int *) = nullptr;
    void (*ssyrk)(const char *, const char *, const int *, const int *, const float *, const float *, const int *,
                  const float *, float *, const int *) = nullptr;
    void (*dsyrk)(const char *, const char *, const int *, const int *, const double *, const double *, const int *,
                  const double *, double *, const int *) = nullptr;
    void (*dtrsm)(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
                  const double *, const int *, double *, const int *) = nullptr;
    void (*dpotrf)(const char *, const int *, double *, const int *, int *) = nullptr;
    void (*dpotrs)(const char *, const int *, const int *, const double *, const int *, double *, const int *,
                   int *) = nullptr;
    void (*spotri)(const char *, const int *, float *, const int *, int *) = nullptr;
};
inline Blas blas;

template <class Real>
void gemm(char ta, char tb, index_t m, index_t n, index_t k, const Real *a, index_t lda, const Real *b, index_t ldb,
          Real beta, Real *c, index_t ldc) {
    const int mi = static_cast<int>(m), ni = static_cast<int>(n), ki = static_cast<int>(k);
    const int la = static_cast<int>(std::max<index_t>(lda, 1)), lb = static_cast<int>(std::max<index_t>(ldb, 1));
    const int lc = static_cast<int>(std::max<index_t>(ldc, 1));
    const Real one = 1;
    if constexpr (std::is_same_v<Real, float>)
        blas.sgemm(&ta, &tb, &mi, &ni, &ki, &one, a, &la, b, &lb, &beta, c, &lc);
    else
        blas.dgemm(&ta, &tb, &mi, &ni, &ki, &one, a, &la, b, &lb, &beta, c, &lc);
}

// The Cholesky factor in the lower triangle, in place; false if the matrix is not positive definite.
inline bool cholesky(double *k, index_t n) {
    const int size = static_cast<int>(n);
    int info = 0;
    blas.dpotrf("L", &size, k, &size, &info);
    return info == 0;
}

// Right-hand sides become solutions, given the factor.
inline void cholesky_solve(const double *factor, index_t n, index_t sides, double *b) {
    const int size = static_cast<int>(n), columns = static_cast<int>(sides);
    int info = 0;
    blas.dpotrs("L", &size, &columns, factor, &size, b, &size, &info);
}

}  // namespace tasksieve
