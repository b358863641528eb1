#include "passes.hpp"

namespace tasksieve {

namespace {

// Four columns at a time share the loads of r and keep four independent sums in flight; the pragma allows each sum to be
// kept in several parts.
#define TASKSIEVE_SEGMENT_COLUMNS(NAME, T)                                                                            \
    TASKSIEVE_MULTIVERSION void NAME(const T *x, index_t rows, const index_t *columns, index_t begin, index_t end,    \
                                     const double *r, const index_t *offsets, index_t tasks, bool squares,            \
                                     double *out) {                                                                   \
        index_t k = begin;                                                                                            \
        for (; !squares && k + 4 <= end; k += 4) {                                                                    \
            const T *c0 = x + (columns ? columns[k] : k) * rows, *c1 = x + (columns ? columns[k + 1] : k + 1) * rows; \
            const T *c2 = x + (columns ? columns[k + 2] : k + 2) * rows;                                              \
            const T *c3 = x + (columns ? columns[k + 3] : k + 3) * rows;                                              \
            double *row = out + k * tasks;                                                                            \
            for (index_t t = 0; t < tasks; ++t) {                                                                     \
                const index_t lo = offsets[t], hi = offsets[t + 1];                                                   \
                double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;                                                        \
                _Pragma("omp simd reduction(+ : s0, s1, s2, s3)") for (index_t i = lo; i < hi; ++i) {                 \
                    s0 += static_cast<double>(c0[i]) * r[i];                                                          \
                    s1 += static_cast<double>(c1[i]) * r[i];                                                          \
                    s2 += static_cast<double>(c2[i]) * r[i];                                                          \
                    s3 += static_cast<double>(c3[i]) * r[i];                                                          \
                }                                                                                                     \
                row[t] = s0;                                                                                          \
                row[tasks + t] = s1;                                                                                  \
                row[2 * tasks + t] = s2;                                                                              \
                row[3 * tasks + t] = s3;                                                                              \
            }                                                                                                         \
        }                                                                                                             \
        for (; k < end; ++k) {                                                                                        \
            const T *column = x + (columns ? columns[k] : k) * rows;                                                  \
            double *row = out + k * tasks;                                                                            \
            for (index_t t = 0; t < tasks; ++t) {                                                                     \
                const index_t lo = offsets[t], hi = offsets[t + 1];                                                   \
                double sum = 0.0;                                                                                     \
                if (squares) {                                                                                        \
                    _Pragma("omp simd reduction(+ : sum)") for (index_t i = lo; i < hi; ++i) {                        \
                        const double v = static_cast<double>(column[i]);                                              \
                        sum += v * v * r[i];                                                                          \
                    }                                                                                                 \
                } else {                                                                                              \
                    _Pragma("omp simd reduction(+ : sum)") for (index_t i = lo; i < hi; ++i) sum +=                   \
                        static_cast<double>(column[i]) * r[i];                                                        \
                }                                                                                                     \
                row[t] = sum;                                                                                         \
            }                                                                                                         \
        }                                                                                                             \
    }
TASKSIEVE_SEGMENT_COLUMNS(segment_columns_f64, double)
TASKSIEVE_SEGMENT_COLUMNS(segment_columns_f32, float)
TASKSIEVE_SEGMENT_COLUMNS(segment_columns_i8, std::int8_t)
TASKSIEVE_SEGMENT_COLUMNS(segment_columns_u8, std::uint8_t)

inline void segment_columns(const double *x, index_t n, const index_t *c, index_t b, index_t e, const double *r,
                            const index_t *o, index_t t, bool s, double *out) {
    segment_columns_f64(x, n, c, b, e, r, o, t, s, out);
}
inline void segment_columns(const float *x, index_t n, const index_t *c, index_t b, index_t e, const double *r,
                            const index_t *o, index_t t, bool s, double *out) {
    segment_columns_f32(x, n, c, b, e, r, o, t, s, out);
}
inline void segment_columns(const std::int8_t *x, index_t n, const index_t *c, index_t b, index_t e, const double *r,
                            const index_t *o, index_t t, bool s, double *out) {
    segment_columns_i8(x, n, c, b, e, r, o, t, s, out);
}
inline void segment_columns(const std::uint8_t *x, index_t n, const index_t *c, index_t b, index_t e, const double *r,
                            const index_t *o, index_t t, bool s, double *out) {
    segment_columns_u8(x, n, c, b, e, r, o, t, s, out);
}

constexpr index_t column_grain = 256;  // columns one thread takes at a time

}  // namespace

template <class T>
void segment_products(const T *x, index_t rows, const index_t *columns, index_t count, const double *r,
                      const index_t *offsets, index_t tasks, bool squares, int threads, double *out) {
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        segment_columns(x, rows, columns, begin, end, r, offsets, tasks, squares, out);
    });
}

template <class T>
void shared_products(const T *x, index_t rows, const index_t *columns, index_t count, const double *r, index_t tasks,
                     bool squares, int threads, double *out) {
    const bool direct = std::is_same_v<T, double> && columns == nullptr && !squares;
    // A block of columns, widened to double, is multiplied by BLAS while it is still in cache.
    const index_t block = direct ? 512 : std::max<index_t>(16, 65536 / std::max<index_t>(rows, 1));
    parallel_for(count, block, threads, [&](index_t begin, index_t end) {
        std::vector<double> buffer;
        const double *source;
        if constexpr (std::is_same_v<T, double>) source = x + begin * rows;
        if (!direct) {
            buffer.resize((end - begin) * rows);
            for (index_t k = begin; k < end; ++k) {
                const T *column = x + (columns ? columns[k] : k) * rows;
                double *target = buffer.data() + (k - begin) * rows;
                if (squares)
                    for (index_t i = 0; i < rows; ++i) target[i] = double(column[i]) * double(column[i]);
                else
                    for (index_t i = 0; i < rows; ++i) target[i] = double(column[i]);
            }
            source = buffer.data();
        }
        gemm('T', 'N', tasks, end - begin, rows, r, rows, source, rows, 0.0, out + begin * tasks, tasks);
    });
}

template <class T, class I>
void sparse_products(const T *data, const I *indices, const I *indptr, const index_t *columns, index_t count,
                     const double *r, const index_t *task_of, index_t tasks, bool squares, int threads, double *out) {
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        for (index_t k = begin; k < end; ++k) {
            const index_t j = columns ? columns[k] : k;
            double *row = out + k * tasks;
            std::fill(row, row + tasks, 0.0);
            for (index_t p = indptr[j]; p < static_cast<index_t>(indptr[j + 1]); ++p) {
                const index_t i = indices[p];
                const double v = squares ? double(data[p]) * double(data[p]) : double(data[p]);
                if (task_of) {
                    row[task_of[i]] += v * r[i];
                } else {
                    const double *values = r + i * tasks;
                    for (index_t t = 0; t < tasks; ++t) row[t] += v * values[t];
                }
            }
        }
    });
}

template <class T>
void row_products(const T *x, index_t rows, index_t features, const double *r, const index_t *task_of, bool squares,
                  int threads, double *out) {
    parallel_for(features, 4096, threads, [&](index_t begin, index_t end) {
        for (index_t i = 0; i < rows; ++i) {
            const double weight = r[i];
            if (weight == 0.0) continue;
            const T *row = x + i * features;
            double *target = out + task_of[i] * features;
            if (squares)
                for (index_t j = begin; j < end; ++j) target[j] += weight * double(row[j]) * double(row[j]);
            else
                for (index_t j = begin; j < end; ++j) target[j] += weight * double(row[j]);
        }
    });
}

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

TASKSIEVE_MULTIVERSION void anchored_range(const float *const *anchors, index_t n_anchors, const double *coef,
                                           const float *norms, index_t norm_stride, const double *remainder,
                                           double shared_remainder, double radius, const double *group,
                                           const double *l1, bool positive, const index_t *chosen, index_t begin,
                                           index_t end, index_t tasks, double *estimate, double *upper,
                                           double *moments, double *b, double *a) {
    for (index_t i = begin; i < end; ++i) {
        const index_t j = chosen ? chosen[i] : i;
        for (index_t t = 0; t < tasks; ++t) b[t] = 0.0;
        for (index_t m = 0; m < n_anchors; ++m) {
            const float *row = anchors[m] + j * tasks;
            const double *weight = coef + m * tasks;
#pragma omp simd
            for (index_t t = 0; t < tasks; ++t) b[t] += weight[t] * static_cast<double>(row[t]);
        }
        double kappa, error;
        if (norm_stride == 0) {  // one matrix for all tasks: all norms of a row are equal
            kappa = norms[j];
            error = kappa * shared_remainder;
        } else {
            const float *row = norms + j * norm_stride;
            double sum = 0.0;
            float largest = 0.0f;
#pragma omp simd reduction(+ : sum) reduction(max : largest)
            for (index_t t = 0; t < tasks; ++t) {
                const double e = static_cast<double>(row[t]) * remainder[t];
                sum += e * e;
                largest = row[t] > largest ? row[t] : largest;
            }
            kappa = largest;
            error = std::sqrt(sum);
        }
        if (moments) {
            double squares = 0.0, cross = 0.0;
            if (n_anchors > 0) {
                const float *first = anchors[0] + j * tasks;
#pragma omp simd reduction(+ : squares, cross)
                for (index_t t = 0; t < tasks; ++t) {
                    squares += b[t] * b[t];
                    cross += b[t] * static_cast<double>(first[t]);
                }
            }
            moments[3 * i] = squares;
            moments[3 * i + 1] = cross;
            moments[3 * i + 2] = error;
        }
        if (positive)
            for (index_t t = 0; t < tasks; ++t) b[t] = b[t] > 0.0 ? b[t] : 0.0;
        const double threshold = group[j], entry = l1 ? l1[j] : 0.0;
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
        if (radius > 0.0 && entry == 0.0 && !positive && norm_stride != 0 && bound >= threshold) {
            // Only rows that the cheap bound leaves open pay for the secular equation.
            const float *row = norms + j * norm_stride;
            for (index_t t = 0; t < tasks; ++t) {
                a[t] = row[t];
                if (row[t] >= kappa) dominant = std::max(dominant, std::fabs(b[t]));
            }
            const double lower = squares + kappa * radius * (kappa * radius + 2.0 * dominant);
            if (lower < threshold * threshold) bound = std::sqrt(ball_maximum(a, b, tasks, kappa, radius)) + error;
        }
        // A row without a group norm (threshold 0) is judged by its entries alone.
        if (threshold > 0.0) {
            estimate[i] = norm / threshold;
            upper[i] = bound / threshold;
        } else {
            estimate[i] = entry > 0.0 ? largest / entry : 0.0;
            upper[i] = entry > 0.0 ? (largest + reach) / entry : 0.0;
        }
    }
}

// One task and no l1 part: every row is a number, so the loop runs over features instead of tasks.
TASKSIEVE_MULTIVERSION void anchored_numbers(const float *const *anchors, index_t n_anchors, const double *coef,
                                             const float *norms, double reach, const double *group, bool positive,
                                             index_t begin, index_t end, double *estimate, double *upper) {
    for (index_t j = begin; j < end; ++j) estimate[j] = 0.0;
    for (index_t m = 0; m < n_anchors; ++m) {
        const float *values = anchors[m];
        const double weight = coef[m];
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

void anchored_ratios(const float *const *anchors, index_t n_anchors, const double *coef, const float *norms,
                     index_t norm_stride, const double *remainder, double shared_remainder, double radius,
                     const double *group, const double *l1, bool positive, const index_t *chosen, index_t count,
                     index_t tasks, int threads, double *estimate, double *upper, double *moments) {
    if (tasks == 1 && !l1 && !chosen && !moments) {
        const double reach = (norm_stride == 0 ? shared_remainder : remainder[0]) + radius;
        parallel_for(count, 8192, threads, [&](index_t begin, index_t end) {
            anchored_numbers(anchors, n_anchors, coef, norms, reach, group, positive, begin, end, estimate, upper);
        });
        return;
    }
    parallel_for(count, 1024, threads, [&](index_t begin, index_t end) {
        std::vector<double> work(2 * tasks);
        anchored_range(anchors, n_anchors, coef, norms, norm_stride, remainder, shared_remainder, radius, group, l1,
                       positive, chosen, begin, end, tasks, estimate, upper, moments, work.data(),
                       work.data() + tasks);
    });
}

#define TASKSIEVE_INSTANTIATE(T)                                                                                      \
    template void segment_products<T>(const T *, index_t, const index_t *, index_t, const double *, const index_t *,  \
                                      index_t, bool, int, double *);                                                  \
    template void shared_products<T>(const T *, index_t, const index_t *, index_t, const double *, index_t, bool,     \
                                     int, double *);                                                                  \
    template void sparse_products<T, std::int32_t>(const T *, const std::int32_t *, const std::int32_t *,             \
                                                   const index_t *, index_t, const double *, const index_t *,         \
                                                   index_t, bool, int, double *);                                     \
    template void sparse_products<T, std::int64_t>(const T *, const std::int64_t *, const std::int64_t *,             \
                                                   const index_t *, index_t, const double *, const index_t *,         \
                                                   index_t, bool, int, double *);                                     \
    template void row_products<T>(const T *, index_t, index_t, const double *, const index_t *, bool, int, double *);
TASKSIEVE_INSTANTIATE(double)
TASKSIEVE_INSTANTIATE(float)
TASKSIEVE_INSTANTIATE(std::int8_t)
TASKSIEVE_INSTANTIATE(std::uint8_t)

}  // namespace tasksieve
