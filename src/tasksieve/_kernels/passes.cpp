#include "passes.hpp"

#include "byte_columns.hpp"
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

// Products of two columns with up to four vectors over some rows. Two columns and four vectors: eight sums in flight, and
// each number of X is loaded, widened and squared once for four vectors. `Squares`: of the columns' squared entries.
template <int V, bool Squares, class T>
TASKSIEVE_INLINE void pair_products(const T *c0, const T *c1, const double *const *r, index_t lo, index_t hi,
                                    double *first, double *second) {
    const double *r0 = r[0], *r1 = r[V > 1 ? 1 : 0], *r2 = r[V > 2 ? 2 : 0], *r3 = r[V > 3 ? 3 : 0];
    double a0 = 0.0, a1 = 0.0, a2 = 0.0, a3 = 0.0, b0 = 0.0, b1 = 0.0, b2 = 0.0, b3 = 0.0;
#pragma omp simd reduction(+ : a0, a1, a2, a3, b0, b1, b2, b3)
    for (index_t i = lo; i < hi; ++i) {
        const double x = static_cast<double>(c0[i]), y = static_cast<double>(c1[i]);
        const double v = Squares ? x * x : x, w = Squares ? y * y : y;
        a0 += v * r0[i];
        b0 += w * r0[i];
        if (V > 1) {
            a1 += v * r1[i];
            b1 += w * r1[i];
        }
        if (V > 2) {
            a2 += v * r2[i];
            b2 += w * r2[i];
        }
        if (V > 3) {
            a3 += v * r3[i];
            b3 += w * r3[i];
        }
    }
    const double a[4] = {a0, a1, a2, a3}, b[4] = {b0, b1, b2, b3};
    for (int k = 0; k < V; ++k) {
        first[k] = a[k];
        second[k] = b[k];
    }
}

template <bool Squares, class T>
TASKSIEVE_INLINE void many_pair(const T *c0, const T *c1, const double *const *r, index_t vectors, index_t lo,
                                index_t hi, index_t at, index_t other, double *const *out) {
    double first[4], second[4];
    for (index_t k = 0; k < vectors; k += 4) {  // the segments are in the cache after the first four
        const index_t count = std::min<index_t>(4, vectors - k);
        switch (count) {
            case 1: pair_products<1, Squares>(c0, c1, r + k, lo, hi, first, second); break;
            case 2: pair_products<2, Squares>(c0, c1, r + k, lo, hi, first, second); break;
            case 3: pair_products<3, Squares>(c0, c1, r + k, lo, hi, first, second); break;
            default: pair_products<4, Squares>(c0, c1, r + k, lo, hi, first, second); break;
        }
        for (index_t m = 0; m < count; ++m) {
            out[k + m][at] = first[m];
            out[k + m][other] = second[m];
        }
    }
}

template <class T>
TASKSIEVE_INLINE void many_range(const T *x, index_t rows, index_t begin, index_t end, const double *const *r,
                                 index_t squares, index_t vectors, const index_t *offsets, index_t tasks,
                                 double *const *out) {
    for (index_t j = begin; j < end; j += 2) {
        const index_t next = std::min(j + 1, end - 1);  // the last of an odd number is its own neighbour
        const T *c0 = x + j * rows, *c1 = x + next * rows;
        for (index_t t = 0; t < tasks; ++t) {
            const index_t lo = offsets[t], hi = offsets[t + 1], at = j * tasks + t, other = next * tasks + t;
            many_pair<true>(c0, c1, r, squares, lo, hi, at, other, out);
            many_pair<false>(c0, c1, r + squares, vectors - squares, lo, hi, at, other, out + squares);
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
    TASKSIEVE_MULTIVERSION void many_columns(const T *x, index_t rows, index_t begin, index_t end,                   \
                                             const double *const *r, index_t squares, index_t vectors,               \
                                             const index_t *offsets, index_t tasks, double *const *out) {            \
        many_range(x, rows, begin, end, r, squares, vectors, offsets, tasks, out);                                   \
    }
TASKSIEVE_STORED_TYPES(TASKSIEVE_COLUMNS)

constexpr index_t column_grain = 256;  // columns one thread takes at a time

// Whether columns are multiplied side by side: bytes, and enough columns to fill most of the places.
template <class T>
bool side_by_side_pays(index_t count) {
    return sizeof(T) == 1 && turns_bytes && 2 * count >= side_by_side;
}

}  // namespace

template <class T>
void segment_products(const T *x, index_t rows, const index_t *columns, index_t count, const double *r,
                      const index_t *offsets, index_t tasks, bool squares, int threads, double *out) {
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        if constexpr (sizeof(T) == 1)
            if (side_by_side_pays<T>(end - begin))
                return byte_products({x, rows, columns}, begin, end, &r, squares, 1, offsets, tasks, &out);
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
void sparse_products(const Compressed<T, I> &x, const index_t *columns, index_t count, const double *r, index_t vectors,
                     const index_t *task_of, index_t tasks, bool squares, int threads, double *out) {
    const index_t width = task_of ? vectors * tasks : vectors;
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        for (index_t k = begin; k < end; ++k) {
            const auto column = x[columns ? columns[k] : k];
            double *row = out + k * width;
            std::fill(row, row + width, 0.0);
            for (index_t p = 0; p < column.count; ++p) {
                const index_t i = column.index[p];
                const double v = squares ? double(column.value[p]) * double(column.value[p]) : double(column.value[p]);
                const double *values = r + i * vectors;
                if (task_of) {
                    double *target = row + task_of[i];
                    for (index_t m = 0; m < vectors; ++m) target[m * tasks] += v * values[m];
                } else {
                    for (index_t m = 0; m < vectors; ++m) row[m] += v * values[m];
                }
            }
        }
    });
}

namespace {

// target += sum of `count` (1 or 4) rows times their weights, added one after the other as if alone: the sums stay in
// registers meanwhile.
template <bool Squares, class T>
void add_rows(const T *const *x, const double *w, int count, index_t begin, index_t end, double *target) {
    const auto term = [](double weight, T value) {
        const double v = static_cast<double>(value);
        return Squares ? weight * v * v : weight * v;
    };
    if (count == 4) {
        const T *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
        for (index_t j = begin; j < end; ++j) {
            double sum = target[j] + term(w[0], x0[j]);
            sum += term(w[1], x1[j]);
            sum += term(w[2], x2[j]);
            target[j] = sum + term(w[3], x3[j]);
        }
        return;
    }
    for (int k = 0; k < count; ++k)
        for (index_t j = begin; j < end; ++j) target[j] += term(w[k], x[k][j]);
}

constexpr index_t row_group = 16;  // rows of a stretch of columns that stay in the cache for all vectors

}  // namespace

template <class T>
void row_products(const T *x, index_t rows, index_t features, const double *const *r, index_t squares, index_t vectors,
                  const index_t *const *task_of, int threads, double *const *out) {
    const index_t grain = vectors == 1 ? 4096 : 1024;
    parallel_for(features, grain, threads, [&](index_t begin, index_t end) {
        for (index_t low = 0; low < rows; low += row_group)
            for (index_t m = 0; m < vectors; ++m) {
                const T *lines[4];
                double weights[4];
                int count = 0;
                index_t task = -1;
                const auto add = [&] {
                    double *target = out[m] + task * features;
                    if (m < squares)
                        add_rows<true>(lines, weights, count, begin, end, target);
                    else
                        add_rows<false>(lines, weights, count, begin, end, target);
                    count = 0;
                };
                for (index_t i = low; i < std::min(rows, low + row_group); ++i) {
                    if (r[m][i] == 0.0) continue;  // the row is absent
                    if (count == 4 || (count && task_of[m][i] != task)) add();
                    task = task_of[m][i];
                    lines[count] = x + i * features;
                    weights[count++] = r[m][i];
                }
                if (count) add();
            }
    });
}

template <class T>
void many_products(const T *x, index_t rows, index_t count, const double *const *r, index_t squares, index_t vectors,
                   const index_t *offsets, index_t tasks, int threads, double *const *out) {
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        if constexpr (sizeof(T) == 1)
            if (side_by_side_pays<T>(end - begin))
                return byte_products({x, rows, nullptr}, begin, end, r, squares, vectors, offsets, tasks, out);
        many_columns(x, rows, begin, end, r, squares, vectors, offsets, tasks, out);
    });
}

#define TASKSIEVE_INSTANTIATE(T)                                                                                      \
    template void segment_products<T>(const T *, index_t, const index_t *, index_t, const double *, const index_t *,  \
                                      index_t, bool, int, double *);                                                  \
    template void many_products<T>(const T *, index_t, index_t, const double *const *, index_t, index_t,              \
                                   const index_t *, index_t, int, double *const *);                                   \
    template void shared_products<T>(const T *, index_t, const index_t *, index_t, const double *, index_t, bool,     \
                                     int, double *);                                                                  \
    template void sparse_products(const Compressed<T, std::int32_t> &, const index_t *, index_t, const double *,      \
                                  index_t, const index_t *, index_t, bool, int, double *);                            \
    template void sparse_products(const Compressed<T, std::int64_t> &, const index_t *, index_t, const double *,      \
                                  index_t, const index_t *, index_t, bool, int, double *);                            \
    template void row_products<T>(const T *, index_t, index_t, const double *const *, index_t, index_t,               \
                                  const index_t *const *, int, double *const *);
TASKSIEVE_STORED_TYPES(TASKSIEVE_INSTANTIATE)

}  // namespace tasksieve
