#include "algebra.hpp"

#include <atomic>

#include "blas.hpp"
#include "panel.hpp"
#include "parallel.hpp"

namespace tasksieve {

namespace {

// Lower triangle of target += sum_k a_k x_k x_k', one tile of columns a thread.
void add_outer(const double *x, index_t rows, const index_t *columns, const double *a, index_t count, int threads,
               double *target) {
    if (count == 0) return;
    std::vector<double> scaled(rows * count);
    for (index_t k = 0; k < count; ++k) {
        const double *column = x + columns[k] * rows, root = std::sqrt(a[k]);
        for (index_t i = 0; i < rows; ++i) scaled[k * rows + i] = root * column[i];
    }
    constexpr index_t tile = 96;
    parallel_for(rows, tile, threads, [&](index_t begin, index_t end) {
        gemm('N', 'T', rows - begin, end - begin, count, scaled.data() + begin, rows, scaled.data() + begin, rows, 1.0,
             target + begin * rows + begin, rows);
    });
}

void lower_solve(const double *factor, index_t n, double *b, index_t ldb, index_t count) {
    const int size = static_cast<int>(n), columns = static_cast<int>(count), ld = static_cast<int>(ldb);
    const double one = 1.0;
    blas.dtrsm("L", "L", "N", "N", &size, &columns, &one, factor, &size, b, &ld);
}

void set_identity(double *k, index_t n, double size = 1.0) {
    std::fill(k, k + n * n, 0.0);
    for (index_t i = 0; i < n; ++i) k[i * n + i] = size;
}

// Where the factor of task t starts.
std::vector<index_t> factor_starts(const index_t *offsets, index_t tasks) {
    std::vector<index_t> start(tasks + 1, 0);
    for (index_t t = 0; t < tasks; ++t) {
        const index_t n = offsets[t + 1] - offsets[t];
        start[t + 1] = start[t] + n * n;
    }
    return start;
}

}  // namespace

bool factor_tasks(const double *x, index_t rows, const index_t *offsets, index_t tasks, const index_t *columns,
                  const double *a, index_t count, const double *y, int threads, double *factors, double *r,
                  const double *diagonal) {
    const auto start = factor_starts(offsets, tasks);
    std::atomic<bool> ok{true};
    parallel_for(tasks, 1, threads, [&](index_t begin, index_t end) {
        std::vector<const double *> segments(count);
        for (index_t t = begin; t < end; ++t) {
            const index_t lo = offsets[t], n = offsets[t + 1] - lo;
            double *k_t = factors + start[t];
            set_identity(k_t, n, diagonal ? diagonal[t] : 1.0);
            for (index_t k = 0; k < count; ++k) segments[k] = x + columns[k] * rows + lo;
            add_outer_products(segments.data(), a, count, n, k_t);
            if (n == 0) continue;
            if (!cholesky(k_t, n)) {
                ok = false;
                continue;
            }
            std::copy(y + lo, y + lo + n, r + lo);
            cholesky_solve(k_t, n, 1, r + lo);
        }
    });
    return ok;
}

template <class Real>
void whiten_tasks(const double *x, index_t rows, const index_t *offsets, index_t tasks, const index_t *columns,
                  const double *u, index_t count, const double *factors, int threads, Real *z, bool shared) {
    const auto start = factor_starts(offsets, tasks);
    const index_t samples = offsets[tasks];
    parallel_for(tasks, 1, threads, [&](index_t begin, index_t end) {
        std::vector<double> inverse, whitened;
        std::vector<const double *> segments(count);
        for (index_t t = begin; t < end; ++t) {
            const index_t lo = offsets[t], n = offsets[t + 1] - lo;
            if (n == 0) continue;
            // Many right-hand sides against a small triangle: a product with its inverse is several times faster
            // than substitution.
            inverse.resize(n * n);
            set_identity(inverse.data(), n);
            lower_solve(factors + start[t], n, inverse.data(), n, n);
            for (index_t k = 0; k < count; ++k) segments[k] = x + columns[k] * rows + (shared ? 0 : lo);
            const Panel panel(inverse.data(), n, n, true);
            constexpr index_t block = 64;
            whitened.resize(block * n);
            for (index_t first = 0; first < count; first += block) {
                const index_t some = std::min(block, count - first);
                panel.products(segments.data() + first, some, whitened.data());
                for (index_t k = 0; k < some; ++k) {
                    const double scale = u[(first + k) * tasks + t];
                    Real *target = z + (first + k) * samples + lo;
                    for (index_t i = 0; i < n; ++i) target[i] = static_cast<Real>(scale * whitened[k * n + i]);
                }
            }
        }
    });
}

template void whiten_tasks<float>(const double *, index_t, const index_t *, index_t, const index_t *, const double *,
                                  index_t, const double *, int, float *, bool);
template void whiten_tasks<double>(const double *, index_t, const index_t *, index_t, const index_t *, const double *,
                                   index_t, const double *, int, double *, bool);

bool factor_shared_shifted(const double *x, index_t rows, const index_t *columns, const double *a, index_t count,
                           const double *diagonal, const double *y, index_t tasks, int threads, double *factors,
                           double *r) {
    std::vector<double> common(rows * rows, 0.0);
    add_outer(x, rows, columns, a, count, threads, common.data());
    std::atomic<bool> ok{true};
    parallel_for(tasks, 1, threads, [&](index_t begin, index_t end) {
        for (index_t t = begin; t < end; ++t) {
            double *k_t = factors + t * rows * rows;
            std::copy(common.begin(), common.end(), k_t);
            for (index_t i = 0; i < rows; ++i) k_t[i * rows + i] += diagonal[t];
            if (!cholesky(k_t, rows)) {
                ok = false;
                continue;
            }
            std::copy(y + t * rows, y + (t + 1) * rows, r + t * rows);
            cholesky_solve(k_t, rows, 1, r + t * rows);
        }
    });
    return ok;
}

bool factor_shared(const double *x, index_t rows, const index_t *columns, const double *a, index_t count,
                   const double *y, index_t tasks, int threads, double *factor, double *r) {
    set_identity(factor, rows);
    add_outer(x, rows, columns, a, count, threads, factor);
    if (!cholesky(factor, rows)) return false;
    std::copy(y, y + rows * tasks, r);
    cholesky_solve(factor, rows, tasks, r);
    return true;
}

void whiten_shared(const double *x, index_t rows, const index_t *columns, index_t count, const double *factor,
                   int threads, float *z) {
    std::vector<double> inverse(rows * rows);
    set_identity(inverse.data(), rows);
    lower_solve(factor, rows, inverse.data(), rows, rows);
    const std::vector<float> inverse_single(inverse.begin(), inverse.end());
    parallel_for(count, 256, threads, [&](index_t begin, index_t end) {
        std::vector<float> block((end - begin) * rows);
        for (index_t k = begin; k < end; ++k)
            std::copy(x + columns[k] * rows, x + (columns[k] + 1) * rows, block.data() + (k - begin) * rows);
        gemm('N', 'N', rows, end - begin, rows, inverse_single.data(), rows, block.data(), rows, 0.0f,
             z + begin * rows, rows);
    });
}

void normal_matrix(const float *z, index_t rows, index_t count, const float *u, index_t tasks, int threads, float *m) {
    threads = std::max(threads, 1);
    // Square blocks, as large as the threads allow: products of wide blocks run at full speed. Off-diagonal blocks
    // cost twice a diagonal one and go first.
    const index_t blocks = std::min<index_t>(threads, std::max<index_t>(count / 64, 1));
    std::vector<std::pair<index_t, index_t>> order;
    for (index_t i = 0; i < blocks; ++i)
        for (index_t j = 0; j < i; ++j) order.emplace_back(i, j);
    for (index_t i = 0; i < blocks; ++i) order.emplace_back(i, i);
    auto edge = [&](index_t i) { return i * count / blocks; };
    auto fill = [&](const float *source, index_t height, index_t i, index_t j, float *target, index_t ld) {
        const index_t row = edge(i), column = edge(j), tall = edge(i + 1) - row, wide = edge(j + 1) - column;
        if (i == j) {
            const int n = static_cast<int>(tall), k = static_cast<int>(height), lds = static_cast<int>(ld);
            const float one = 1.0f, zero = 0.0f;
            blas.ssyrk("L", "T", &n, &k, &one, source + row * height, &k, &zero, target, &lds);
        } else {
            gemm('T', 'N', tall, wide, height, source + row * height, height, source + column * height, height, 0.0f,
                 target, ld);
        }
    };
    parallel_for(order.size(), 1, threads, [&](index_t begin, index_t end) {
        std::vector<float> inner;
        for (index_t task = begin; task < end; ++task) {
            const auto [i, j] = order[task];
            const index_t row = edge(i), column = edge(j), tall = edge(i + 1) - row, wide = edge(j + 1) - column;
            float *target = m + column * count + row;
            fill(z, rows, i, j, target, count);
            if (u) {
                inner.resize(tall * wide);
                fill(u, tasks, i, j, inner.data(), tall);
                for (index_t c = 0; c < wide; ++c)
                    for (index_t r = (i == j ? c : 0); r < tall; ++r) target[c * count + r] *= inner[c * tall + r];
            }
        }
    });
    parallel_for(count, 128, threads, [&](index_t begin, index_t end) {
        for (index_t c = begin; c < end; ++c)
            for (index_t i = c + 1; i < count; ++i) m[i * count + c] = m[c * count + i];
    });
}

void normal_product(const float *z, index_t rows, index_t count, const float *u, index_t tasks, const float *v,
                    int threads, float *out) {
    threads = std::max(threads, 1);
    if (count == 0) return;
    if (!u) {
        std::vector<float> image(rows);
        const int ld = static_cast<int>(rows), one_int = 1, width = static_cast<int>(count);
        const float one = 1.0f, zero = 0.0f;
        parallel_for(rows, 256, threads, [&](index_t begin, index_t end) {
            const int height = static_cast<int>(end - begin);
            blas.sgemv("N", &height, &width, &one, z + begin, &ld, v, &one_int, &zero, image.data() + begin, &one_int);
        });
        parallel_for(count, 64, threads, [&](index_t begin, index_t end) {
            const int columns = static_cast<int>(end - begin);
            blas.sgemv("T", &ld, &columns, &one, z + begin * rows, &ld, image.data(), &one_int, &zero, out + begin,
                       &one_int);
        });
        return;
    }
    // Each thread multiplies its own columns of Z, so that no column is packed twice; the images are then added.
    const index_t chunk = (count + threads - 1) / threads, chunks = (count + chunk - 1) / chunk;
    std::vector<float> images(chunks * rows * tasks);
    parallel_for(count, chunk, threads, [&](index_t begin, index_t end) {
        std::vector<float> scaled((end - begin) * tasks);
        for (index_t k = begin; k < end; ++k)
            for (index_t t = 0; t < tasks; ++t) scaled[(k - begin) * tasks + t] = u[k * tasks + t] * v[k];
        gemm('N', 'T', rows, tasks, end - begin, z + begin * rows, rows, scaled.data(), tasks, 0.0f,
             images.data() + begin / chunk * rows * tasks, rows);
    });
    for (index_t c = 1; c < chunks; ++c)
        for (index_t i = 0; i < rows * tasks; ++i) images[i] += images[c * rows * tasks + i];
    parallel_for(count, chunk, threads, [&](index_t begin, index_t end) {
        std::vector<float> inner(tasks * (end - begin));
        gemm('T', 'N', tasks, end - begin, rows, images.data(), rows, z + begin * rows, rows, 0.0f, inner.data(),
             tasks);
        for (index_t k = begin; k < end; ++k) {
            float sum = 0.0f;
            for (index_t t = 0; t < tasks; ++t) sum += inner[(k - begin) * tasks + t] * u[k * tasks + t];
            out[k] = sum;
        }
    });
}

void combine(const double *x, index_t rows, const index_t *offsets, index_t tasks, bool shared,
             const index_t *columns, index_t count, const double *w, int threads, double *out) {
    threads = std::max(threads, 1);
    if (shared) {
        constexpr index_t strip = 512;
        parallel_for(rows, strip, threads, [&](index_t begin, index_t end) {
            const index_t height = end - begin;
            constexpr index_t depth = 256;
            std::vector<double> packed(height * std::min(depth, count));
            for (index_t t = 0; t < tasks; ++t) std::fill(out + t * rows + begin, out + t * rows + end, 0.0);
            for (index_t k0 = 0; k0 < count; k0 += depth) {
                const index_t width = std::min(depth, count - k0);
                for (index_t k = 0; k < width; ++k)
                    std::copy(x + columns[k0 + k] * rows + begin, x + columns[k0 + k] * rows + end,
                              packed.data() + k * height);
                gemm('N', 'T', height, tasks, width, packed.data(), height, w + k0 * tasks, tasks, 1.0, out + begin,
                     rows);
            }
        });
        return;
    }
    // Columns outside, tasks inside: each column is read once, in order, while the output stays in cache.
    parallel_for(tasks, (tasks + threads - 1) / threads, threads, [&](index_t begin, index_t end) {
        std::fill(out + offsets[begin], out + offsets[end], 0.0);
        for (index_t k = 0; k < count; ++k) {
            const double *column = x + columns[k] * rows;
            for (index_t t = begin; t < end; ++t) {
                const double weight = w[k * tasks + t];
                if (weight == 0.0) continue;
                for (index_t i = offsets[t]; i < offsets[t + 1]; ++i) out[i] += weight * column[i];
            }
        }
    });
}

namespace {

TASKSIEVE_MULTIVERSION double reweight_segment(const double *x, const double *w, const double *basis,
                                               index_t basis_stride, index_t n_basis, index_t n, double *out) {
    double before = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : before)
    for (index_t i = 0; i < n; ++i) {
        out[i] = w[i] * x[i];
        before += out[i] * out[i];
    }
    if (n_basis == 0) return before;
    // Where little of a column is left, the rounding of the first projection is not small beside it: project again.
    for (int sweep = 0; sweep < 2; ++sweep) {
        for (index_t b = 0; b < n_basis; ++b) {
            const double *unit = basis + b * basis_stride;
            double inner = 0.0;
#pragma omp simd reduction(+ : inner)
            for (index_t i = 0; i < n; ++i) inner += unit[i] * out[i];
            for (index_t i = 0; i < n; ++i) out[i] -= inner * unit[i];
        }
        squares = 0.0;
#pragma omp simd reduction(+ : squares)
        for (index_t i = 0; i < n; ++i) squares += out[i] * out[i];
        if (squares > 1e-4 * before) break;
    }
    return squares;
}

}  // namespace

void reweight(const double *x, index_t rows, const index_t *offsets, index_t tasks, bool shared,
              const index_t *columns, index_t count, const double *w, const double *basis, index_t n_basis,
              int threads, double *out, double *h) {
    const index_t samples = offsets[tasks];
    parallel_for(count, 32, threads, [&](index_t begin, index_t end) {
        for (index_t k = begin; k < end; ++k) {
            const double *column = x + columns[k] * rows;
            for (index_t t = 0; t < tasks; ++t) {
                const index_t lo = offsets[t];
                h[k * tasks + t] = reweight_segment(column + (shared ? 0 : lo), w + lo, basis + lo, samples, n_basis,
                                                    offsets[t + 1] - lo, out + k * samples + lo);
            }
        }
    });
}

}  // namespace tasksieve
