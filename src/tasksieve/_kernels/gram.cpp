#include "gram.hpp"

#include <atomic>

#include "blas.hpp"
#include "parallel.hpp"

namespace tasksieve {

namespace {

// Lower triangle of I + D G D, gathered.
void scaled_gram(const double *gram, index_t capacity, const index_t *slots, const double *root, index_t count,
                 double *b) {
    for (index_t j = 0; j < count; ++j) {
        const double *row = gram + slots[j] * capacity;
        double *target = b + j * count;
        for (index_t i = j; i < count; ++i) target[i] = root[i] * root[j] * row[slots[i]];
        target[j] += 1.0;
    }
}

std::vector<double> roots(const double *a, index_t count) {
    std::vector<double> root(count);
    for (index_t k = 0; k < count; ++k) root[k] = std::sqrt(a[k]);
    return root;
}

}  // namespace

void extend_grams(const double *x, index_t rows, const index_t *offsets, index_t matrices, const index_t *columns,
                  index_t known, index_t total, index_t capacity, int threads, double *gram) {
    parallel_for(matrices, 1, threads, [&](index_t begin, index_t end) {
        constexpr index_t strip = 256;  // rows at a time: the packed panel stays in cache
        std::vector<double> panel, sums((total - known) * total);
        for (index_t t = begin; t < end; ++t) {
            const index_t lo = matrices == 1 ? 0 : offsets[t], hi = matrices == 1 ? rows : offsets[t + 1];
            std::fill(sums.begin(), sums.end(), 0.0);
            for (index_t i = lo; i < hi; i += strip) {
                const index_t height = std::min(strip, hi - i);
                panel.resize(height * total);
                for (index_t k = 0; k < total; ++k)
                    std::copy(x + columns[k] * rows + i, x + columns[k] * rows + i + height, panel.data() + k * height);
                gemm('T', 'N', total, total - known, height, panel.data(), height, panel.data() + known * height, height,
                     1.0, sums.data(), total);
            }
            double *g = gram + t * capacity * capacity;
            for (index_t j = known; j < total; ++j)
                for (index_t i = 0; i < total; ++i) {
                    const double value = sums[(j - known) * total + i];
                    g[j * capacity + i] = value;
                    if (i < known) g[i * capacity + j] = value;
                }
        }
    });
}

bool gram_factor(const double *gram, index_t matrices, index_t capacity, const index_t *slots, const double *a,
                 index_t count, const double *c, index_t tasks, int threads, double *factors, double *w) {
    if (count == 0) return true;
    const auto root = roots(a, count);
    std::atomic<bool> ok{true};
    const index_t together = tasks / matrices;  // right-hand sides of one matrix
    parallel_for(matrices, 1, threads, [&](index_t begin, index_t end) {
        std::vector<double> right(count * together);
        for (index_t g = begin; g < end; ++g) {
            double *b = factors + g * count * count;
            scaled_gram(gram + g * capacity * capacity, capacity, slots, root.data(), count, b);
            if (!cholesky(b, count)) {
                ok = false;
                continue;
            }
            for (index_t s = 0; s < together; ++s)
                for (index_t k = 0; k < count; ++k) right[s * count + k] = root[k] * c[k * tasks + g + s];
            cholesky_solve(b, count, together, right.data());
            for (index_t s = 0; s < together; ++s)
                for (index_t k = 0; k < count; ++k) w[k * tasks + g + s] = root[k] * right[s * count + k];
        }
    });
    return ok;
}

bool gram_normal(const double *factors, index_t matrices, const double *a, const double *u, index_t count,
                 index_t tasks, int threads, float *m) {
    if (count == 0) return true;
    const auto root = roots(a, count);
    std::vector<double> v(u, u + count * tasks);  // u_k / sqrt a_k
    for (index_t k = 0; k < count; ++k)
        for (index_t t = 0; t < tasks; ++t) v[k * tasks + t] /= root[k];
    std::atomic<bool> ok{true};
    // As many sums as threads, over fixed sets of tasks: the same input and thread count give the same bytes.
    const index_t grain = (matrices + std::max(threads, 1) - 1) / std::max(threads, 1);
    const index_t chunks = (matrices + grain - 1) / grain;
    std::vector<float> sums(chunks * count * count, 0.0f);
    parallel_for(matrices, grain, threads, [&](index_t begin, index_t end) {
        std::vector<float> inverse(count * count), side(count);
        std::vector<double> inner;
        float *sum = sums.data() + begin / grain * count * count;
        for (index_t g = begin; g < end; ++g) {
            const double *source = factors + g * count * count;
            for (index_t j = 0; j < count; ++j)
                for (index_t i = j; i < count; ++i) inverse[j * count + i] = static_cast<float>(source[j * count + i]);
            const int size = static_cast<int>(count);
            int info = 0;
            blas.spotri("L", &size, inverse.data(), &size, &info);
            if (info != 0) {
                ok = false;
                continue;
            }
            const bool several = matrices == 1 && tasks > 1;
            if (several) {  // v_j . v_i over the tasks that share this matrix
                inner.resize(count * count);
                gemm('T', 'N', count, count, tasks, v.data(), tasks, v.data(), tasks, 0.0, inner.data(), count);
            }
            for (index_t k = 0; k < count; ++k) side[k] = static_cast<float>(v[k * tasks + g]);
            for (index_t j = 0; j < count; ++j) {
                float *column = inverse.data() + j * count, *target = sum + j * count;
                column[j] -= 1.0f;
                if (several)
                    for (index_t i = j; i < count; ++i)
                        target[i] -= column[i] * static_cast<float>(inner[j * count + i]);
                else
                    for (index_t i = j; i < count; ++i) target[i] -= column[i] * side[i] * side[j];
            }
        }
    });
    for (index_t c = 1; c < chunks; ++c)
        for (index_t i = 0; i < count * count; ++i) sums[i] += sums[c * count * count + i];
    for (index_t j = 0; j < count; ++j)
        for (index_t i = j; i < count; ++i) m[j * count + i] = m[i * count + j] = sums[j * count + i];
    return ok;
}

}  // namespace tasksieve
