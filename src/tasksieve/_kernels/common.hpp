// What every kernel file needs: thread splitting, function multiversioning, BLAS/LAPACK taken from SciPy.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

// One binary serves every x86-64 machine: the loader picks the clone that the processor can run. The clones are named by
// instruction set: one named by a processor ("arch=haswell") would run on that very model and on no later one.
// Sanitizers start after the loader does, so a sanitized build keeps only the plain version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__)
#if __GNUC__ >= 12
#define TASKSIEVE_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TASKSIEVE_MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define TASKSIEVE_MULTIVERSION
#endif

#if defined(__GNUC__)
#define TASKSIEVE_INLINE inline __attribute__((always_inline))
#define TASKSIEVE_INLINE_LAMBDA __attribute__((always_inline))  // a lambda is compiled with the clone that it is in
#else
#define TASKSIEVE_INLINE inline
#define TASKSIEVE_INLINE_LAMBDA
#endif

namespace tasksieve {

using index_t = std::int64_t;

// Runs body(begin, end) over [0, count) in chunks of `grain`, on up to `threads` threads. Each output belongs to one
// chunk, so where chunks do not depend on the number of threads, neither do the results.
template <class Body>
void parallel_for(index_t count, index_t grain, int threads, const Body &body) {
    grain = std::max<index_t>(grain, 1);
    const index_t chunks = (count + grain - 1) / grain;
    threads = static_cast<int>(std::min<index_t>(threads, chunks));
    if (threads <= 1) {
        for (index_t c = 0; c < chunks; ++c) body(c * grain, std::min(count, (c + 1) * grain));
        return;
    }
    std::atomic<index_t> next{0};
    auto work = [&] {
        for (index_t c = next.fetch_add(1); c < chunks; c = next.fetch_add(1))
            body(c * grain, std::min(count, (c + 1) * grain));
    };
    std::vector<std::thread> pool;
    pool.reserve(threads - 1);
    for (int k = 1; k < threads; ++k) pool.emplace_back(work);
    work();
    for (auto &worker : pool) worker.join();
}

// Fortran BLAS/LAPACK of the SciPy that is installed: no second BLAS is linked.
struct Blas {
    void (*dgemm)(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
                  const int *, const double *, const int *, const double *, double *, const int *) = nullptr;
    void (*sgemm)(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
                  const int *, const float *, const int *, const float *, float *, const int *) = nullptr;
    void (*sgemv)(const char *, const int *, const int *, const float *, const float *, const int *, const float *,
                  const int *, const float *, float *, const int *) = nullptr;
    void (*ssyrk)(const char *, const char *, const int *, const int *, const float *, const float *, const int *,
                  const float *, float *, const int *) = nullptr;
    void (*dtrsm)(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
                  const double *, const int *, double *, const int *) = nullptr;
    void (*dpotrf)(const char *, const int *, double *, const int *, int *) = nullptr;
    void (*dpotrs)(const char *, const int *, const int *, const double *, const int *, double *, const int *,
                   int *) = nullptr;
    void (*spotri)(const char *, const int *, float *, const int *, int *) = nullptr;
};
extern Blas blas;

inline void gemm(char ta, char tb, index_t m, index_t n, index_t k, const float *a, index_t lda, const float *b,
                 index_t ldb, float beta, float *c, index_t ldc) {
    const int mi = static_cast<int>(m), ni = static_cast<int>(n), ki = static_cast<int>(k);
    const int la = static_cast<int>(std::max<index_t>(lda, 1)), lb = static_cast<int>(std::max<index_t>(ldb, 1));
    const int lc = static_cast<int>(std::max<index_t>(ldc, 1));
    const float one = 1.0f;
    blas.sgemm(&ta, &tb, &mi, &ni, &ki, &one, a, &la, b, &lb, &beta, c, &lc);
}

inline void gemm(char ta, char tb, index_t m, index_t n, index_t k, const double *a, index_t lda, const double *b,
                 index_t ldb, double beta, double *c, index_t ldc) {
    const int mi = static_cast<int>(m), ni = static_cast<int>(n), ki = static_cast<int>(k);
    const int la = static_cast<int>(std::max<index_t>(lda, 1)), lb = static_cast<int>(std::max<index_t>(ldb, 1));
    const int lc = static_cast<int>(std::max<index_t>(ldc, 1));
    const double one = 1.0;
    blas.dgemm(&ta, &tb, &mi, &ni, &ki, &one, a, &la, b, &lb, &beta, c, &lc);
}

}  // namespace tasksieve
