#include "byte_columns.hpp"

#include <cstring>

namespace tasksieve {

namespace {

constexpr index_t side = side_by_side, square = 16;
constexpr index_t unrolled = 8;
constexpr index_t tile_rows = 256;  // of 64 columns: 16 KiB, which stay in the first cache for all vectors

#if defined(TASKSIEVE_SHUFFLES)
typedef std::uint8_t Line __attribute__((vector_size(16)));

// The bytes of two lines in turn, of their first halves and of their second halves.
TASKSIEVE_INLINE void interleave(const Line &a, const Line &b, Line &first, Line &second) {
    first = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    second = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// out[i, c] = byte i of column c, in lines of `side` bytes.
TASKSIEVE_INLINE void turn_square(const void *const *from, std::uint8_t *out) {
    Line a[square], b[square];
    for (index_t c = 0; c < square; ++c) std::memcpy(&a[c], from[c], square);
    // Four perfect shuffles of 16 lines exchange rows and columns.
    for (index_t c = 0; c < square / 2; ++c) interleave(a[c], a[c + 8], b[2 * c], b[2 * c + 1]);
    for (index_t c = 0; c < square / 2; ++c) interleave(b[c], b[c + 8], a[2 * c], a[2 * c + 1]);
    for (index_t c = 0; c < square / 2; ++c) interleave(a[c], a[c + 8], b[2 * c], b[2 * c + 1]);
    for (index_t c = 0; c < square / 2; ++c) interleave(b[c], b[c + 8], a[2 * c], a[2 * c + 1]);
    for (index_t i = 0; i < square; ++i) std::memcpy(out + i * side, &a[i], square);
}
#endif

// turned[i, c] = column c at row first + i.
template <class T>
TASKSIEVE_INLINE void turn(const T *const *column, index_t first, index_t count, T *turned) {
#if defined(TASKSIEVE_SHUFFLES)
    for (index_t group = 0; count >= square && group < side; group += square)
        for (index_t i = 0; i < count; i += square) {
            const index_t at = std::min(i, count - square);  // the last square may overlap the one before
            const void *from[square];
            for (index_t c = 0; c < square; ++c) from[c] = column[group + c] + first + at;
            turn_square(from, reinterpret_cast<std::uint8_t *>(turned + at * side + group));
        }
    if (count >= square) return;
#endif
    for (index_t i = 0; i < count; ++i)
        for (index_t c = 0; c < side; ++c) turned[i * side + c] = column[c][first + i];
}

// sums[v, c] += products of the columns' entries, or of their squares, with V vectors over `count` rows, a multiple of 8.
// Loops over columns that compilers vectorise as they are: eight rows between two visits of the sums.
template <int V, bool Squares, class T>
TASKSIEVE_INLINE void add_products(const T *turned, const double *const *r, index_t count, double *sums) {
    for (index_t i = 0; i < count; i += unrolled) {
        const T *x = turned + i * side;
        const double *w = r[0] + i, *z = r[V - 1] + i;
#pragma omp simd
        for (index_t c = 0; c < side; ++c) {
            double first = sums[c], second = V > 1 ? sums[side + c] : 0.0;
            TASKSIEVE_UNROLL(8)
            for (index_t k = 0; k < unrolled; ++k) {
                const int entry = x[k * side + c];
                const double value = static_cast<double>(Squares ? entry * entry : entry);
                first += w[k] * value;
                if (V > 1) second += z[k] * value;
            }
            sums[c] = first;
            if (V > 1) sums[side + c] = second;
        }
    }
}

template <bool Squares, class T>
TASKSIEVE_INLINE void add_group(const T *turned, const double *const *r, index_t vectors, index_t first, index_t count,
                                double *sums) {
    for (index_t k = 0; k < vectors; k += 2) {
        const double *own[2] = {r[k] + first, r[std::min(k + 1, vectors - 1)] + first};
        if (k + 1 < vectors)
            add_products<2, Squares>(turned, own, count, sums + k * side);
        else
            add_products<1, Squares>(turned, own, count, sums + k * side);
    }
}

// Each task's part of a vector, followed by zeros up to a multiple of 8.
struct Padded {
    std::vector<index_t> starts;
    std::vector<double> values;
    std::vector<const double *> vectors;

    Padded(const double *const *r, index_t count, const index_t *offsets, index_t tasks) : starts(tasks + 1) {
        for (index_t t = 0; t < tasks; ++t)
            starts[t + 1] = starts[t] + (offsets[t + 1] - offsets[t] + unrolled - 1) / unrolled * unrolled;
        values.assign(count * starts[tasks], 0.0);
        for (index_t v = 0; v < count; ++v) {
            double *own = values.data() + v * starts[tasks];
            for (index_t t = 0; t < tasks; ++t)
                std::copy(r[v] + offsets[t], r[v] + offsets[t + 1], own + starts[t]);
            vectors.push_back(own);
        }
    }
};

template <class T>
TASKSIEVE_INLINE void byte_range(const ByteColumns<T> &x, index_t begin, index_t end, const Padded &r, index_t squares,
                                 const index_t *offsets, index_t tasks, double *const *out) {
    alignas(64) T turned[(tile_rows + unrolled) * side] = {};
    const index_t vectors = index_t(r.vectors.size());
    std::vector<double> sums(vectors * side);
    for (index_t k = begin; k < end; k += side) {
        const index_t width = std::min(side, end - k);
        const T *column[side];
        for (index_t c = 0; c < side; ++c) column[c] = x.at(k + std::min(c, width - 1));
        index_t low = 0, high = 0;  // rows that are turned: whole tasks, or a part of one
        for (index_t t = 0; t < tasks; ++t) {
            const index_t stop = offsets[t + 1];
            std::fill(sums.begin(), sums.end(), 0.0);
            for (index_t i = offsets[t]; i < stop;) {
                if (i >= high || stop > high) {
                    low = i;
                    high = std::min(stop, low + tile_rows);
                    for (index_t s = t + 1; s < tasks && offsets[s + 1] <= low + tile_rows; ++s) high = offsets[s + 1];
                    turn(column, low, high - low, turned);
                }
                const index_t count = std::min(high, stop) - i, first = r.starts[t] + i - offsets[t];
                const index_t padded = (count + unrolled - 1) / unrolled * unrolled;
                const T *here = turned + (i - low) * side;
                add_group<true>(here, r.vectors.data(), squares, first, padded, sums.data());
                add_group<false>(here, r.vectors.data() + squares, vectors - squares, first, padded,
                                 sums.data() + squares * side);
                i += count;
            }
            for (index_t v = 0; v < vectors; ++v)
                for (index_t c = 0; c < width; ++c) out[v][(k + c) * tasks + t] = sums[v * side + c];
        }
    }
}

}  // namespace

TASKSIEVE_MULTIVERSION void byte_products(const ByteColumns<std::int8_t> &x, index_t begin, index_t end,
                                          const double *const *r, index_t squares, index_t vectors,
                                          const index_t *offsets, index_t tasks, double *const *out) {
    byte_range(x, begin, end, Padded(r, vectors, offsets, tasks), squares, offsets, tasks, out);
}

TASKSIEVE_MULTIVERSION void byte_products(const ByteColumns<std::uint8_t> &x, index_t begin, index_t end,
                                          const double *const *r, index_t squares, index_t vectors,
                                          const index_t *offsets, index_t tasks, double *const *out) {
    byte_range(x, begin, end, Padded(r, vectors, offsets, tasks), squares, offsets, tasks, out);
}

}  // namespace tasksieve
