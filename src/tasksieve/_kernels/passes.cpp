#include "passes.hpp"

#include "panel.hpp"
#include "parallel.hpp"

namespace tasksieve {

namespace {

// Four columns at a time share the loads of r and keep four independent sums in flight; the pragma allows each sum to be
// kept in several parts.
template <class T>
TASKSIEVE_INLINE void segment_range(const T *x, index_t rows, const index_t *columns, index_t begin, index_t end,
                                    const double *r, const index_t *offsets, index_t tasks, bool squares, double *out) {
    index_t k = begin;
    for (; !squares && k + 4 <= end; k += 4) {
        const T *c0 = x + (columns ? columns[k] : k) * rows, *c1 = x + (columns ? columns[k + 1] : k + 1) * rows;
        const T *c2 = x + (columns ? columns[k + 2] : k + 2) * rows;
        const T *c3 = x + (columns ? columns[k + 3] : k + 3) * rows;
        double *row = out + k * tasks;
        for (index_t t = 0; t < tasks; ++t) {
            const index_t lo = offsets[t], hi = offsets[t + 1];
            double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
            for (index_t i = lo; i < hi; ++i) {
                s0 += static_cast<double>(c0[i]) * r[i];
                s1 += static_cast<double>(c1[i]) * r[i];
                s2 += static_cast<double>(c2[i]) * r[i];
                s3 += static_cast<double>(c3[i]) * r[i];
            }
            row[t] = s0;
            row[tasks + t] = s1;
            row[2 * tasks + t] = s2;
            row[3 * tasks + t] = s3;
        }
    }
    for (; k < end; ++k) {
        const T *column = x + (columns ? columns[k] : k) * rows;
        double *row = out + k * tasks;
        for (index_t t = 0; t < tasks; ++t) {
            const index_t lo = offsets[t], hi = offsets[t + 1];
            double sum = 0.0;
            if (squares) {
#pragma omp simd reduction(+ : sum)
                for (index_t i = lo; i < hi; ++i) {
                    const double v = static_cast<double>(column[i]);
                    sum += v * v * r[i];
                }
            } else {
#pragma omp simd reduction(+ : sum)
                for (index_t i = lo; i < hi; ++i) sum += static_cast<double>(column[i]) * r[i];
            }
            row[t] = sum;
        }
    }
}

template <class T>
TASKSIEVE_INLINE void first_range(const T *x, index_t rows, index_t begin, index_t end, const double *weights,
                                  const double *r, index_t vectors, const index_t *offsets, index_t tasks,
                                  double *squares, double *const *out) {
    index_t j = begin;
    for (; j + 2 <= end; j += 2) {  // two columns share the loads of weights and vectors
        const T *c0 = x + j * rows, *c1 = c0 + rows;
        for (index_t t = 0; t < tasks; ++t) {
            const index_t lo = offsets[t], hi = offsets[t + 1], at = j * tasks + t;
            double q0 = 0.0, q1 = 0.0, s0 = 0.0, s1 = 0.0;
#pragma omp simd reduction(+ : q0, q1, s0, s1)
            for (index_t i = lo; i < hi; ++i) {
                const double v0 = static_cast<double>(c0[i]), v1 = static_cast<double>(c1[i]);
                q0 += v0 * v0 * weights[i];
                q1 += v1 * v1 * weights[i];
                s0 += v0 * r[i];
                s1 += v1 * r[i];
            }
            squares[at] = q0;
            squares[at + tasks] = q1;
            out[0][at] = s0;
            out[0][at + tasks] = s1;
            for (index_t k = 1; k < vectors; ++k) {  // the segments are in the cache by now
                const double *other = r + k * rows;
                double m0 = 0.0, m1 = 0.0;
#pragma omp simd reduction(+ : m0, m1)
                for (index_t i = lo; i < hi; ++i) {
                    m0 += static_cast<double>(c0[i]) * other[i];
                    m1 += static_cast<double>(c1[i]) * other[i];
                }
                out[k][at] = m0;
                out[k][at + tasks] = m1;
            }
        }
    }
    for (; j < end; ++j) {
        const T *column = x + j * rows;
        for (index_t t = 0; t < tasks; ++t) {
            const index_t lo = offsets[t], hi = offsets[t + 1];
            double square = 0.0, sum = 0.0;
#pragma omp simd reduction(+ : square, sum)
            for (index_t i = lo; i < hi; ++i) {
                const double v = static_cast<double>(column[i]);
                square += v * v * weights[i];
                sum += v * r[i];
            }
            squares[j * tasks + t] = square;
            out[0][j * tasks + t] = sum;
            for (index_t k = 1; k < vectors; ++k) {
                const double *other = r + k * rows;
                double more = 0.0;
#pragma omp simd reduction(+ : more)
                for (index_t i = lo; i < hi; ++i) more += static_cast<double>(column[i]) * other[i];
                out[k][j * tasks + t] = more;
            }
        }
    }
}

// A function of its own for every type, so that each is compiled for every processor.
#define TASKSIEVE_COLUMNS(T)                                                                                         \
    TASKSIEVE_MULTIVERSION void segment_columns(const T *x, index_t rows, const index_t *columns, index_t begin,     \
                                                index_t end, const double *r, const index_t *offsets, index_t tasks, \
                                                bool squares, double *out) {                                         \
        segment_range(x, rows, columns, begin, end, r, offsets, tasks, squares, out);                                \
    }                                                                                                                \
    TASKSIEVE_MULTIVERSION void first_columns(const T *x, index_t rows, index_t begin, index_t end,                  \
                                              const double *weights, const double *r, index_t vectors,               \
                                              const index_t *offsets, index_t tasks, double *squares,                \
                                              double *const *out) {                                                  \
        first_range(x, rows, begin, end, weights, r, vectors, offsets, tasks, squares, out);                         \
    }
TASKSIEVE_STORED_TYPES(TASKSIEVE_COLUMNS)

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
    const Panel panel(r, rows, tasks);
    // Columns of other types are widened a block at a time, and multiplied while the block is still in the cache.
    const bool direct = std::is_same_v<T, double> && !squares;
    const index_t block = direct ? 512 : std::max<index_t>(16, 65536 / std::max<index_t>(rows, 1));
    parallel_for(count, block, threads, [&](index_t begin, index_t end) {
        std::vector<const double *> addresses(end - begin);
        std::vector<double> buffer(direct ? 0 : (end - begin) * rows);
        for (index_t k = begin; k < end; ++k) {
            const T *column = x + (columns ? columns[k] : k) * rows;
            if constexpr (std::is_same_v<T, double>) addresses[k - begin] = column;
            if (direct) continue;
            double *target = buffer.data() + (k - begin) * rows;
            addresses[k - begin] = target;
            if (squares)
                for (index_t i = 0; i < rows; ++i) target[i] = double(column[i]) * double(column[i]);
            else
                for (index_t i = 0; i < rows; ++i) target[i] = double(column[i]);
        }
        panel.products(addresses.data(), end - begin, out + begin * tasks);
    });
}

template <class T, class I>
void sparse_products(const Compressed<T, I> &x, const index_t *columns, index_t count, const double *r,
                     const index_t *task_of, index_t tasks, bool squares, int threads, double *out) {
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        for (index_t k = begin; k < end; ++k) {
            const auto column = x[columns ? columns[k] : k];
            double *row = out + k * tasks;
            std::fill(row, row + tasks, 0.0);
            for (index_t p = 0; p < column.count; ++p) {
                const index_t i = column.index[p];
                const double v = squares ? double(column.value[p]) * double(column.value[p]) : double(column.value[p]);
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

template <class T>
void first_products(const T *x, index_t rows, index_t count, const double *weights, const double *r, index_t vectors,
                    const index_t *offsets, index_t tasks, int threads, double *squares, double *const *out) {
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        first_columns(x, rows, begin, end, weights, r, vectors, offsets, tasks, squares, out);
    });
}

#define TASKSIEVE_INSTANTIATE(T)                                                                                      \
    template void segment_products<T>(const T *, index_t, const index_t *, index_t, const double *, const index_t *,  \
                                      index_t, bool, int, double *);                                                  \
    template void first_products<T>(const T *, index_t, index_t, const double *, const double *, index_t,             \
                                    const index_t *, index_t, int, double *, double *const *);                        \
    template void shared_products<T>(const T *, index_t, const index_t *, index_t, const double *, index_t, bool,     \
                                     int, double *);                                                                  \
    template void sparse_products(const Compressed<T, std::int32_t> &, const index_t *, index_t, const double *,      \
                                  const index_t *, index_t, bool, int, double *);                                     \
    template void sparse_products(const Compressed<T, std::int64_t> &, const index_t *, index_t, const double *,      \
                                  const index_t *, index_t, bool, int, double *);                                     \
    template void row_products<T>(const T *, index_t, index_t, const double *, const index_t *, bool, int, double *);
TASKSIEVE_STORED_TYPES(TASKSIEVE_INSTANTIATE)

}  // namespace tasksieve
