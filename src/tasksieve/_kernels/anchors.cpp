#include "anchors.hpp"

#include <limits>

#include "parallel.hpp"
#include "vectors.hpp"

namespace tasksieve {

namespace {

// max over ||u|| <= D of sum_t (a_t u_t + b_t)^2, from above: every mu > kappa^2 gives an upper bound U(mu)
// (mathematics 2.4), so a few Newton steps from inside the bracket need no convergence test to be safe.
TASKSIEVE_INLINE double ball_maximum(const double *a, const double *b, index_t tasks, double kappa, double D) {
    double ab2 = 0.0, b2 = 0.0, top = 0.0;
    const double k2 = kappa * kappa;
#pragma omp simd reduction(+ : ab2, b2, top)
    for (index_t t = 0; t < tasks; ++t) {
        const double bb = b[t] * b[t], aa = a[t] * a[t];
        ab2 += aa * bb;
        b2 += bb;
        top += a[t] >= kappa ? bb : 0.0;
    }
    if (b2 == 0.0) return k2 * D * D;
    const double lo = k2 + kappa * std::sqrt(top) / D, hi = k2 + std::sqrt(ab2) / D;
    double mu = std::min(std::max(ab2 / b2 + std::sqrt(ab2) / D, lo), hi);
    double best = std::pow(std::sqrt(b2) + kappa * D, 2);  // the cheap bound is always valid
    for (int step = 0; step < 2; ++step) {
        if (!(mu > k2 * (1.0 + 1e-13))) break;
        double rest = 0.0, u2 = 0.0, slope = 0.0;
#pragma omp simd reduction(+ : rest, u2, slope)
        for (index_t t = 0; t < tasks; ++t) {
            const double inverse = 1.0 / (mu - a[t] * a[t]), u = a[t] * b[t] * inverse;
            rest += b[t] * b[t] * inverse;
            u2 += u * u;
            slope += u * u * inverse;
        }
        best = std::min(best, mu * (D * D + rest));
        if (slope == 0.0) break;
        const double norm = std::sqrt(u2);
        const double next = mu + u2 / slope * (norm - D) / D;
        mu = (next > lo && next < hi) ? next : 0.5 * (mu + (norm > D ? hi : lo));
    }
    return best;
}

TASKSIEVE_MULTIVERSION void anchored_range(const Anchored &is, index_t begin, index_t end, double *b, double *a) {
    const index_t tasks = is.tasks;
    const double radius = is.radius;
    for (index_t i = begin; i < end; ++i) {
        const index_t j = is.chosen ? is.chosen[i] : i;
        for (index_t t = 0; t < tasks; ++t) b[t] = 0.0;
        for (index_t m = 0; m < is.n_anchors; ++m) {
            const float *row = is.anchors[m] + j * tasks;
            const double *weight = is.coef + m * tasks;
#pragma omp simd
            for (index_t t = 0; t < tasks; ++t) b[t] += weight[t] * static_cast<double>(row[t]);
        }
        double kappa, error;
        if (is.one_norm) {  // one matrix for all tasks: all norms of a row are equal
            kappa = is.norms[j];
            error = kappa * is.shared_remainder;
        } else {
            const float *row = is.norms + j * tasks;
            double sum = 0.0;
            float largest = 0.0f;
#pragma omp simd reduction(+ : sum) reduction(max : largest)
            for (index_t t = 0; t < tasks; ++t) {
                const double e = static_cast<double>(row[t]) * is.remainder[t];
                sum += e * e;
                largest = row[t] > largest ? row[t] : largest;
            }
            kappa = largest;
            error = std::sqrt(sum);
        }
        if (is.moments) {
            double squares = 0.0, cross = 0.0;
            if (is.n_anchors > 0) {
                const float *first = is.anchors[0] + j * tasks;
#pragma omp simd reduction(+ : squares, cross)
                for (index_t t = 0; t < tasks; ++t) {
                    squares += b[t] * b[t];
                    cross += b[t] * static_cast<double>(first[t]);
                }
            }
            is.moments[3 * i] = squares;
            is.moments[3 * i + 1] = cross;
            is.moments[3 * i + 2] = error;
        }
        if (is.positive)
            for (index_t t = 0; t < tasks; ++t) b[t] = b[t] > 0.0 ? b[t] : 0.0;
        const double threshold = is.group[j], entry = is.l1 ? is.l1[j] : 0.0;
        double squares = 0.0, largest = 0.0, dominant = 0.0;
        if (entry == 0.0) {
#pragma omp simd reduction(+ : squares)
            for (index_t t = 0; t < tasks; ++t) squares += b[t] * b[t];
        } else {
            for (index_t t = 0; t < tasks; ++t) {
                const double size = std::fabs(b[t]), rest = size - entry;
                largest = std::max(largest, size);
                if (rest > 0.0) squares += rest * rest;
            }
        }
        const double norm = std::sqrt(squares), reach = error + kappa * radius;
        double bound = norm + reach;
        if (entry > 0.0 && largest <= entry) bound = std::max(largest + reach - entry, 0.0);
        if (radius > 0.0 && entry == 0.0 && !is.positive && !is.one_norm && bound >= threshold) {
            // Only rows that the cheap bound leaves open pay for the secular equation.
            const float *row = is.norms + j * tasks;
            for (index_t t = 0; t < tasks; ++t) {
                a[t] = row[t];
                if (row[t] >= kappa) dominant = std::max(dominant, std::fabs(b[t]));
            }
            const double lower = squares + kappa * radius * (kappa * radius + 2.0 * dominant);
            if (lower < threshold * threshold) bound = std::sqrt(ball_maximum(a, b, tasks, kappa, radius)) + error;
        }
        // A row without a group norm (threshold 0) is judged by its entries alone.
        if (threshold > 0.0) {
            is.estimate[i] = norm / threshold;
            is.upper[i] = bound / threshold;
        } else {
            is.estimate[i] = entry > 0.0 ? largest / entry : 0.0;
            is.upper[i] = entry > 0.0 ? (largest + reach) / entry : 0.0;
        }
    }
}

// The same for the plain group penalty and M anchors: the combination stays in registers, nothing is written but the
// results. Rows that need the secular equation are left to the general loop.
template <int M, bool OneNorm>
TASKSIEVE_INLINE void plain_rows(const Anchored &is, index_t begin, index_t end) {
    const index_t tasks = is.tasks;
    const double *coef = is.coef, *remainder = is.remainder;
    for (index_t j = begin; j < end; ++j) {
        const float *rows[M];
        for (int m = 0; m < M; ++m) rows[m] = is.anchors[m] + j * tasks;
        const float *own = is.norms + (OneNorm ? j : j * tasks);
        double squares = 0.0, cross = 0.0, sum = 0.0;
        float largest = 0.0f;
#pragma omp simd reduction(+ : squares, cross, sum) reduction(max : largest)
        for (index_t t = 0; t < tasks; ++t) {
            const double first = static_cast<double>(rows[0][t]);
            double b = coef[t] * first;
            for (int m = 1; m < M; ++m) b += coef[m * tasks + t] * static_cast<double>(rows[m][t]);
            squares += b * b;
            cross += b * first;
            if (!OneNorm) {
                const double e = static_cast<double>(own[t]) * remainder[t];
                sum += e * e;
                largest = own[t] > largest ? own[t] : largest;
            }
        }
        const double kappa = OneNorm ? own[0] : largest;
        const double error = OneNorm ? kappa * is.shared_remainder : std::sqrt(sum);
        if (is.moments) {
            is.moments[3 * j] = squares;
            is.moments[3 * j + 1] = cross;
            is.moments[3 * j + 2] = error;
        }
        const double inverse = is.group[j] > 0.0 ? 1.0 / is.group[j] : 0.0, norm = std::sqrt(squares);
        is.estimate[j] = norm * inverse;
        is.upper[j] = (norm + error + kappa * is.radius) * inverse;
    }
}

TASKSIEVE_MULTIVERSION void plain_range(const Anchored &is, index_t begin, index_t end) {
#define TASKSIEVE_PLAIN(M) \
    case M: return is.one_norm ? plain_rows<M, true>(is, begin, end) : plain_rows<M, false>(is, begin, end);
    switch (is.n_anchors) {
        TASKSIEVE_PLAIN(1)
        TASKSIEVE_PLAIN(2)
        TASKSIEVE_PLAIN(3)
        TASKSIEVE_PLAIN(4)
        TASKSIEVE_PLAIN(5)
        TASKSIEVE_PLAIN(6)
    }
#undef TASKSIEVE_PLAIN
}

constexpr index_t most_plain_anchors = 6;

// One task and no l1 part: every row is a number, so the loop runs over features instead of tasks.
TASKSIEVE_MULTIVERSION void anchored_numbers(const Anchored &is, index_t begin, index_t end) {
    const double reach = (is.one_norm ? is.shared_remainder : is.remainder[0]) + is.radius;
    const double *group = is.group;
    const float *norms = is.norms;
    const bool positive = is.positive;
    double *estimate = is.estimate, *upper = is.upper;
    for (index_t j = begin; j < end; ++j) estimate[j] = 0.0;
    for (index_t m = 0; m < is.n_anchors; ++m) {
        const float *values = is.anchors[m];
        const double weight = is.coef[m];
#pragma omp simd
        for (index_t j = begin; j < end; ++j) estimate[j] += weight * static_cast<double>(values[j]);
    }
#pragma omp simd
    for (index_t j = begin; j < end; ++j) {
        const double b = positive ? (estimate[j] > 0.0 ? estimate[j] : 0.0) : std::fabs(estimate[j]);
        const double scale = group[j] > 0.0 ? 1.0 / group[j] : 0.0;
        estimate[j] = b * scale;
        upper[j] = (b + static_cast<double>(norms[j]) * reach) * scale;
    }
}

}  // namespace

void anchored_ratios(const Anchored &is, index_t count, int threads) {
    if (is.tasks == 1 && !is.l1 && !is.chosen && !is.moments) {
        parallel_for(count, 8192, threads, [&](index_t begin, index_t end) { anchored_numbers(is, begin, end); });
        return;
    }
    // Only the secular equation, of the ball around a vector where norms differ between tasks, needs the general loop.
    const bool plain = !is.l1 && !is.positive && !is.chosen && is.n_anchors >= 1 &&
                       is.n_anchors <= most_plain_anchors && (is.radius == 0.0 || is.one_norm);
    parallel_for(count, 1024, threads, [&](index_t begin, index_t end) {
        if (plain) return plain_range(is, begin, end);
        std::vector<double> work(2 * is.tasks);
        anchored_range(is, begin, end, work.data(), work.data() + is.tasks);
    });
}

namespace {

// Solves G a = b in place of b; G is symmetric with a unit diagonal. Anchors of neighbouring values are nearly parallel:
// the system is slightly regularised, and an anchor that the ones before it explain gets nothing. Any a will do.
void combination(std::vector<double> &g, index_t n, double *b) {
    for (index_t i = 0; i < n; ++i) {
        double pivot = g[i * n + i] + 1e-13;
        for (index_t k = 0; k < i; ++k) pivot -= g[i * n + k] * g[i * n + k];
        const double root = pivot > 1e-15 ? std::sqrt(pivot) : HUGE_VAL;
        for (index_t j = i + 1; j < n; ++j) {
            double value = g[j * n + i];
            for (index_t k = 0; k < i; ++k) value -= g[j * n + k] * g[i * n + k];
            g[j * n + i] = value / root;
        }
        for (index_t k = 0; k < i; ++k) b[i] -= g[i * n + k] * b[k];
        b[i] /= root;
        g[i * n + i] = root;
    }
    for (index_t i = n - 1; i >= 0; --i) {
        for (index_t k = i + 1; k < n; ++k) b[i] -= g[k * n + i] * b[k];
        b[i] /= g[i * n + i];
    }
}

TASKSIEVE_MULTIVERSION void express_task(const Expressed &is, const double *vector, index_t t, const double *sizes,
                                         const double *largest, std::vector<double> &system, double *b) {
    const index_t n = is.n_anchors, samples = is.offsets[is.tasks], lo = is.offsets[t], rows = is.offsets[t + 1] - lo;
    const double *gram = is.gram + t * n * n, *own = vector + lo;
    double *rest = is.rest + lo;
    for (index_t m = 0; m < n; ++m) {
        const double inverse = sizes[m] > 0.0 ? 1.0 / sizes[m] : 0.0;
        b[m] = inverse * inline_dot(is.vectors + m * samples + lo, own, rows);
        for (index_t k = 0; k < m; ++k)
            system[m * n + k] = gram[m * n + k] * inverse * (sizes[k] > 0.0 ? 1.0 / sizes[k] : 0.0);
        system[m * n + m] = 1.0;
    }
    combination(system, n, b);
    std::copy(own, own + rows, rest);
    double used = 0.0, beyond = 0.0;
    for (index_t m = 0; m < n; ++m) {
        const double factor = sizes[m] > 0.0 ? b[m] / sizes[m] : 0.0;
        is.coef[m * is.tasks + t] = factor;
        used += std::fabs(factor) * sizes[m];
        beyond += std::fabs(factor) * largest[m];
        inline_axpy(-factor, is.vectors + m * samples + lo, rows, rest);
    }
    is.errors[t] = is.of_parts * used + is.of_vector * std::sqrt(inline_dot(own, own, rows)) + is.of_largest * beyond;
    is.remainder[t] = std::sqrt(inline_dot(rest, rest, rows)) * (1.0 + 1e-10) + is.errors[t];
}

}  // namespace

void express(const Expressed &is, const double *vector) {
    const index_t n = is.n_anchors;
    std::vector<double> sizes(is.tasks * n), largest(n, 0.0), system(n * n), b(n);
    for (index_t t = 0; t < is.tasks; ++t)
        for (index_t m = 0; m < n; ++m) {
            sizes[t * n + m] = std::sqrt(std::max(is.gram[(t * n + m) * n + m], 0.0));
            largest[m] = std::max(largest[m], sizes[t * n + m]);
        }
    for (index_t t = 0; t < is.tasks; ++t)
        express_task(is, vector, t, sizes.data() + t * n, largest.data(), system, b.data());
}

namespace {

TASKSIEVE_MULTIVERSION double magnitude_range(const double *values, index_t count) {
    double largest = 0.0, spoilt = 0.0;
#pragma omp simd reduction(max : largest) reduction(+ : spoilt)
    for (index_t i = 0; i < count; ++i) {
        const double size = std::fabs(values[i]);
        largest = size > largest ? size : largest;
        spoilt += size == size ? 0.0 : 1.0;  // a comparison with what is no number is false
    }
    return spoilt == 0.0 ? largest : std::numeric_limits<double>::quiet_NaN();
}

TASKSIEVE_MULTIVERSION void store_range(const double *values, index_t count, double factor, float least, float *out) {
#pragma omp simd
    for (index_t i = 0; i < count; ++i) {
        const float value = static_cast<float>(factor * values[i]);
        out[i] = value < least ? least : value;
    }
}

constexpr index_t value_grain = 1 << 16;

}  // namespace

TASKSIEVE_MULTIVERSION void moment_bounds(const double *moments, const double *first, const double *longest,
                                          const double *group, index_t count, double alpha, double beta,
                                          double first_unit, double radius, double rounding, double *upper) {
    const double a = std::fabs(alpha), b = std::fabs(beta), mixed = 2.0 * alpha * beta * first_unit;
#pragma omp simd
    for (index_t j = 0; j < count; ++j) {
        const double own = moments[3 * j], cross = moments[3 * j + 1], other = first[3 * j];
        const double whole = a * std::sqrt(own) + b * std::sqrt(other);
        double square = alpha * alpha * own + mixed * cross + beta * beta * other;
        square = square > 0.0 ? square : 0.0;
        // What is left after cancellation carries the rounding of what was cancelled.
        const double bound = std::sqrt(square + rounding * whole * whole) + a * moments[3 * j + 2] +
                             b * first[3 * j + 2] + radius * longest[j];
        upper[j] = group[j] > 0.0 ? bound / group[j] : 0.0;
    }
}

namespace {

TASKSIEVE_MULTIVERSION void inner_range(const float *a, const float *b, index_t begin, index_t end, index_t tasks,
                                        float *out) {
    for (index_t j = begin; j < end; ++j) {
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (index_t t = 0; t < tasks; ++t)
            sum += static_cast<double>(a[j * tasks + t]) * static_cast<double>(b[j * tasks + t]);
        out[j] = static_cast<float>(sum);
    }
}

constexpr index_t joint_block = 512;  // features whose sums stay in the cache

TASKSIEVE_MULTIVERSION void joint_range(const Joint &is, index_t begin, index_t end, double shortest) {
    double square[joint_block], sizes[joint_block];
    const index_t n = is.n_anchors, count = end - begin;
    for (index_t j = 0; j < count; ++j) square[j] = sizes[j] = 0.0;
    for (index_t m = 0; m < n; ++m)
        for (index_t l = 0; l <= m; ++l) {
            const float *inner = is.inner[m * (m + 1) / 2 + l] + begin;
            const double factor = is.coef[m] * is.coef[l], twice = l == m ? factor : 2.0 * factor;
            if (factor == 0.0) continue;
            if (l == m) {
#pragma omp simd
                for (index_t j = 0; j < count; ++j) sizes[j] += factor * static_cast<double>(inner[j]);
            }
#pragma omp simd
            for (index_t j = 0; j < count; ++j) square[j] += twice * static_cast<double>(inner[j]);
        }
    const double *group = is.group + begin, *longest = is.longest + begin;
    double *estimate = is.estimate + begin, *upper = is.upper + begin;
    // (sum_m |c_m| ||a_m||)^2 <= n sum_m c_m^2 ||a_m||^2: what the inner products may be off is relative to it.
    const double rounding = is.rounding * static_cast<double>(n), smallest = is.smallest, reach = shortest + is.radius;
#pragma omp simd
    for (index_t j = 0; j < count; ++j) {
        const double own = square[j] > 0.0 ? square[j] : 0.0, inverse = group[j] > 0.0 ? 1.0 / group[j] : 0.0;
        estimate[j] = std::sqrt(own) * inverse;
        square[j] = std::sqrt(own + rounding * sizes[j] + smallest);
        upper[j] = (square[j] + longest[j] * reach) * inverse;
    }
    for (index_t j = 0; j < count; ++j) {
        if (upper[j] < 1.0) continue;  // what the remainder adds was taken as if it were all in the longest task
        const float *own = is.norms + (begin + j) * is.tasks;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (index_t t = 0; t < is.tasks; ++t) {
            const double e = static_cast<double>(own[t]) * is.remainder[t];
            sum += e * e;
        }
        upper[j] = std::min(upper[j], (square[j] + std::sqrt(sum) + longest[j] * is.radius) / group[j]);
    }
}

}  // namespace

void row_inner_products(const float *a, const float *b, index_t count, index_t tasks, int threads, float *out) {
    parallel_for(count, 4096, threads, [&](index_t begin, index_t end) { inner_range(a, b, begin, end, tasks, out); });
}

void joint_bounds(const Joint &is, index_t count, int threads) {
    double squares = 0.0;
    for (index_t t = 0; t < is.tasks; ++t) squares += is.remainder[t] * is.remainder[t];
    const double length = std::sqrt(squares) * (1.0 + 1e-12);
    parallel_for(count, joint_block, threads,
                 [&](index_t begin, index_t end) { joint_range(is, begin, end, length); });
}

double largest_magnitude(const double *values, index_t count, int threads) {
    std::vector<double> parts((count + value_grain - 1) / value_grain, 0.0);
    parallel_for(count, value_grain, threads, [&](index_t begin, index_t end) {
        parts[begin / value_grain] = magnitude_range(values + begin, end - begin);
    });
    double largest = 0.0;
    for (double part : parts) {
        if (part != part || part > largest) largest = part;
        if (largest != largest) break;
    }
    return largest;
}

void store_single(const double *values, index_t count, double factor, float least, int threads, float *out) {
    parallel_for(count, value_grain, threads, [&](index_t begin, index_t end) {
        store_range(values + begin, end - begin, factor, least, out + begin);
    });
}

}  // namespace tasksieve
