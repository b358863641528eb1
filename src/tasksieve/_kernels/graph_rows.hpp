// Rows of a data matrix as the graph models read them: one at a time, in any order, as they lie in memory.
//
// Every kind of row has load(r) (choose a row), dot(w) and add(scale, w) for the chosen row, prefetch(r) (and before it
// prefetch_start(r), for what tells where the row lies), square() = ||x_r||^2 and each(f): f(lane, j, x_rj) for its entries,
// one in column j, which take turns in eight lanes. Strings compute their hashed features in load and never store them.
#pragma once
#include <memory>
#include <variant>

#include "compressed.hpp"

namespace tasksieve {

template <class T>
struct DenseRows {
    const T *x = nullptr;
    index_t rows = 0, features = 0;
    const T *row = nullptr;

    TASKSIEVE_INLINE void load(index_t r) { row = x + r * features; }

    TASKSIEVE_INLINE void prefetch_start(index_t) const {}

    TASKSIEVE_INLINE void prefetch(index_t r) const {
        const char *start = reinterpret_cast<const char *>(x + r * features);
        const index_t bytes = std::min<index_t>(features * static_cast<index_t>(sizeof(T)), 640);
        for (index_t b = 0; b < bytes; b += 64) fetch_ahead(start + b);
    }

    template <class W>
    TASKSIEVE_INLINE double dot(const W *w) const {
        const T *a = row;
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        index_t j = 0;
        if (features >= 128) {  // four sums in flight hide the latency of the additions
            const index_t quarter = features / 4;
            const T *a1 = a + quarter, *a2 = a1 + quarter, *a3 = a2 + quarter;
            const W *w1 = w + quarter, *w2 = w1 + quarter, *w3 = w2 + quarter;
            for (index_t k = 0; k < quarter; ++k) {
                s0 += static_cast<double>(a[k]) * static_cast<double>(w[k]);
                s1 += static_cast<double>(a1[k]) * static_cast<double>(w1[k]);
                s2 += static_cast<double>(a2[k]) * static_cast<double>(w2[k]);
                s3 += static_cast<double>(a3[k]) * static_cast<double>(w3[k]);
            }
            j = 4 * quarter;
        }
        for (index_t k = j; k < features; ++k) s0 += static_cast<double>(a[k]) * static_cast<double>(w[k]);
        return (s0 + s1) + (s2 + s3);
    }

    template <class W>
    TASKSIEVE_INLINE void add(double scale, W *w) const {
        const T *a = row;
#pragma omp simd
        for (index_t k = 0; k < features; ++k) w[k] += static_cast<W>(scale * static_cast<double>(a[k]));
    }

    TASKSIEVE_INLINE double square() const {
        double s = 0.0;
        for (index_t k = 0; k < features; ++k) s += static_cast<double>(row[k]) * static_cast<double>(row[k]);
        return s;
    }

    template <class F>
    TASKSIEVE_INLINE void each(const F &f) const {
        index_t k = 0;
        for (; k + 8 <= features; k += 8)
#pragma omp simd
            for (index_t lane = 0; lane < 8; ++lane) f(lane, k + lane, static_cast<double>(row[k + lane]));
        for (; k < features; ++k) f(k % 8, k, static_cast<double>(row[k]));
    }

    double entries() const { return static_cast<double>(features); }
};

// Rows of a dense matrix that is mostly zeros (images, counts, indicators), packed: of each row only the blocks of four
// columns that are not empty. Unlike single entries, blocks are read and written as vectors.
template <class T>
struct BlockRows {
    static constexpr index_t size = 4;
    // Room for every block, of which only what is filled is ever touched and takes memory.
    struct Store {
        std::vector<index_t> begin, count;       // row r has count[r] blocks from begin[r] on
        std::unique_ptr<std::uint16_t[]> start;  // first column of each block
        std::unique_ptr<T[]> values;             // size for each block
        index_t blocks = 0;                      // filled
    };
    std::shared_ptr<const Store> store;
    index_t rows = 0, features = 0;
    const T *value = nullptr;
    const std::uint16_t *start = nullptr;
    index_t count = 0;

    TASKSIEVE_INLINE void load(index_t r) {
        const index_t begin = store->begin[r];
        value = store->values.get() + size * begin;
        start = store->start.get() + begin;
        count = store->count[r];
    }

    TASKSIEVE_INLINE void prefetch_start(index_t r) const {
        fetch_ahead(store->begin.data() + r);
        fetch_ahead(store->count.data() + r);
    }

    TASKSIEVE_INLINE void prefetch(index_t r) const {
        const index_t begin = store->begin[r], blocks = std::min<index_t>(store->count[r], 128);
        const char *from = reinterpret_cast<const char *>(store->values.get() + size * begin);
        for (index_t b = 0; b < blocks * size * static_cast<index_t>(sizeof(T)); b += 64) fetch_ahead(from + b);
        from = reinterpret_cast<const char *>(store->start.get() + begin);
        for (index_t b = 0; b < 2 * blocks; b += 64) fetch_ahead(from + b);
    }

    template <class W>
    TASKSIEVE_INLINE double dot(const W *w) const {
        double sums[4 * size] = {};
        index_t b = 0;
        for (; b + 4 <= count; b += 4)  // four sums in flight hide the latency of the additions
            for (index_t u = 0; u < 4; ++u)
#pragma omp simd
                for (index_t k = 0; k < size; ++k)
                    sums[size * u + k] += static_cast<double>(value[size * (b + u) + k]) *
                                          static_cast<double>(w[start[b + u] + k]);
        for (; b < count; ++b)
#pragma omp simd
            for (index_t k = 0; k < size; ++k)
                sums[k] += static_cast<double>(value[size * b + k]) * static_cast<double>(w[start[b] + k]);
        double total = 0.0;
        for (index_t k = 0; k < 4 * size; ++k) total += sums[k];
        return total;
    }

    template <class W>
    TASKSIEVE_INLINE void add(double scale, W *w) const {
        for (index_t b = 0; b < count; ++b) {
            W *to = w + start[b];
#pragma omp simd
            for (index_t k = 0; k < size; ++k)
                to[k] += static_cast<W>(scale * static_cast<double>(value[size * b + k]));
        }
    }

    TASKSIEVE_INLINE double square() const {
        double s = 0.0;
        for (index_t k = 0; k < size * count; ++k) s += static_cast<double>(value[k]) * static_cast<double>(value[k]);
        return s;
    }

    template <class F>
    TASKSIEVE_INLINE void each(const F &f) const {
        for (index_t b = 0; b < count; ++b)
            for (index_t k = 0; k < size; ++k) f(size * (b % 2) + k, start[b] + k, static_cast<double>(value[size * b + k]));
    }

    double entries() const {
        return rows ? static_cast<double>(size * store->blocks) / static_cast<double>(rows) : 0.0;
    }
};

template <class T, class I>
struct SparseRows {
    Compressed<T, I> matrix;
    index_t rows = 0, features = 0;
    Entries<T, I> row;

    TASKSIEVE_INLINE void load(index_t r) { row = matrix[r]; }

    TASKSIEVE_INLINE void prefetch_start(index_t r) const { fetch_ahead(matrix.indptr + r); }

    TASKSIEVE_INLINE void prefetch(index_t r) const {
        const Entries<T, I> next = matrix[r];
        const index_t count = std::min<index_t>(next.count, 256);
        for (index_t k = 0; k < count; k += 64 / static_cast<index_t>(sizeof(T))) fetch_ahead(next.value + k);
        for (index_t k = 0; k < count; k += 64 / static_cast<index_t>(sizeof(I))) fetch_ahead(next.index + k);
    }

    template <class W>
    TASKSIEVE_INLINE double dot(const W *w) const {
        double s = 0.0;
        for (index_t k = 0; k < row.count; ++k)
            s += static_cast<double>(row.value[k]) * static_cast<double>(w[row.index[k]]);
        return s;
    }

    template <class W>
    TASKSIEVE_INLINE void add(double scale, W *w) const {
        for (index_t k = 0; k < row.count; ++k)
            w[row.index[k]] += static_cast<W>(scale * static_cast<double>(row.value[k]));
    }

    TASKSIEVE_INLINE double square() const {
        double s = 0.0;
        for (index_t k = 0; k < row.count; ++k)
            s += static_cast<double>(row.value[k]) * static_cast<double>(row.value[k]);
        return s;
    }

    template <class F>
    TASKSIEVE_INLINE void each(const F &f) const {
        for (index_t k = 0; k < row.count; ++k) f(k % 8, static_cast<index_t>(row.index[k]), static_cast<double>(row.value[k]));
    }

    double entries() const {
        return rows ? static_cast<double>(matrix.indptr[rows]) / static_cast<double>(rows) : 0.0;
    }
};

// Weighted-degree features of strings of one length: one feature per degree k, position p and k-mer starting there.
// Up to `direct` degrees every (p, k-mer) has an index of its own, offset[k] + p 2^(bits k) + code; longer k-mers are
// hashed into the rest of the table. The value of a feature is the weight of its degree.
struct StringRows {
    static constexpr index_t longest_string = 1 << 16;
    const std::uint8_t *text = nullptr;  // rows x length
    index_t rows = 0, length = 0, features = 0;
    const std::uint8_t *letters = nullptr;  // 256 entries: code of a letter, 255 for one that is not in the alphabet
    int bits = 2, degree = 0, direct = 0;
    const index_t *offset = nullptr;  // degree + 1 entries; hashed degrees start at offset[direct]
    const float *weight = nullptr;    // degree entries
    // the row that is loaded
    std::vector<std::uint32_t> index;
    std::vector<index_t> begin;  // degree + 1: index[begin[k]:begin[k + 1]] are the features of degree k + 1
    std::vector<std::uint64_t> code;
    std::vector<std::int32_t> run;  // letters from here on that are in the alphabet

    void prepare() {
        begin.assign(degree + 1, 0);
        index.resize(static_cast<size_t>(entries()) + 16);
        code.resize(length + degree + 1);
        run.resize(length + 1);
    }

    TASKSIEVE_INLINE void load(index_t r) {
        const std::uint8_t *s = text + r * length;
        const std::uint64_t mask =
            bits * degree >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << (bits * degree)) - 1;
        // code[p]: the `degree` letters from p on, the first one in the highest bits (zeros past the end)
        std::uint64_t rolling = 0;
        bool clean = true;
        for (index_t q = 0; q < length + degree - 1; ++q) {
            std::uint8_t c = q < length ? letters[s[q]] : 0;
            if (c == 255) {
                clean = false;
                c = 0;
            }
            rolling = ((rolling << bits) | c) & mask;
            if (q >= degree - 1) code[q - degree + 1] = rolling;
        }
        if (!clean) {
            run[length] = 0;
            for (index_t p = length; p-- > 0;) run[p] = letters[s[p]] == 255 ? 0 : run[p + 1] + 1;
        }
        index_t filled = 0;
        for (int k = 1; k <= degree; ++k) {
            const index_t positions = std::max<index_t>(length - k + 1, 0);
            const int shift = bits * (degree - k);
            begin[k - 1] = filled;
            std::uint32_t *out = index.data() + filled;
            const std::uint64_t *codes = code.data();
            if (k <= direct) {
                const std::uint32_t base = static_cast<std::uint32_t>(offset[k - 1]);
                const int size = bits * k;
#pragma omp simd
                for (index_t p = 0; p < positions; ++p)
                    out[p] = base + static_cast<std::uint32_t>((static_cast<std::uint64_t>(p) << size) +
                                                               (codes[p] >> shift));
            } else {
                const std::uint64_t base = static_cast<std::uint64_t>(offset[direct]);
                const std::uint64_t room = static_cast<std::uint64_t>(features) - base;
                const std::uint64_t salt = static_cast<std::uint64_t>(k) * 0x9E3779B97F4A7C15ULL;
#pragma omp simd
                for (index_t p = 0; p < positions; ++p) {
                    const std::uint64_t h = mix((codes[p] >> shift) + salt, static_cast<std::uint64_t>(p));
                    out[p] = static_cast<std::uint32_t>(base + ((h * room) >> 32));
                }
            }
            if (clean) {
                filled += positions;
            } else {  // leave out k-mers with a letter that is not in the alphabet
                index_t kept = 0;
                for (index_t p = 0; p < positions; ++p)
                    if (run[p] >= k) out[kept++] = out[p];
                filled += kept;
            }
        }
        begin[degree] = filled;
    }

    // 32 well mixed bits of a k-mer and its position.
    static TASKSIEVE_INLINE std::uint64_t mix(std::uint64_t value, std::uint64_t position) {
        std::uint64_t h = (value ^ (position * 0xD6E8FEB86659FD93ULL)) * 0xBF58476D1CE4E5B9ULL;
        h ^= h >> 32;
        h *= 0x94D049BB133111EBULL;
        return h >> 32;
    }

    TASKSIEVE_INLINE void prefetch_start(index_t) const {}

    TASKSIEVE_INLINE void prefetch(index_t r) const {
        fetch_ahead(text + r * length);
        fetch_ahead(text + r * length + 64);
        fetch_ahead(text + r * length + 128);
    }

    template <class W>
    TASKSIEVE_INLINE double dot(const W *w) const {
        double total = 0.0;
        for (int k = 0; k < degree; ++k) {
            W s = 0;
            const std::uint32_t *at = index.data() + begin[k];
            const index_t count = begin[k + 1] - begin[k];
            for (index_t p = 0; p < count; ++p) s += w[at[p]];
            total += static_cast<double>(weight[k]) * static_cast<double>(s);
        }
        return total;
    }

    template <class W>
    TASKSIEVE_INLINE void add(double scale, W *w) const {
        for (int k = 0; k < degree; ++k) {
            const W step = static_cast<W>(scale * static_cast<double>(weight[k]));
            for (index_t p = begin[k]; p < begin[k + 1]; ++p) w[index[p]] += step;
        }
    }

    // Without the cross terms of features that meet in one place of the table: a step size, never a certificate.
    TASKSIEVE_INLINE double square() const {
        double s = 0.0;
        for (int k = 0; k < degree; ++k)
            s += static_cast<double>(weight[k]) * static_cast<double>(weight[k]) *
                 static_cast<double>(begin[k + 1] - begin[k]);
        return s;
    }

    template <class F>
    TASKSIEVE_INLINE void each(const F &f) const {
        for (int k = 0; k < degree; ++k)
            for (index_t p = begin[k]; p < begin[k + 1]; ++p)
                f(p % 8, static_cast<index_t>(index[p]), static_cast<double>(weight[k]));
    }

    double entries() const {
        index_t total = 0;
        for (int k = 0; k < degree; ++k) total += std::max<index_t>(length - k, 0);
        return static_cast<double>(total);
    }
};

using AnyRows =
    std::variant<DenseRows<double>, DenseRows<float>, DenseRows<std::int8_t>, DenseRows<std::uint8_t>,
                 BlockRows<double>, BlockRows<float>, BlockRows<std::int8_t>, BlockRows<std::uint8_t>,
                 SparseRows<double, std::int32_t>, SparseRows<double, std::int64_t>, SparseRows<float, std::int32_t>,
                 SparseRows<float, std::int64_t>, SparseRows<std::int8_t, std::int32_t>,
                 SparseRows<std::int8_t, std::int64_t>, SparseRows<std::uint8_t, std::int32_t>,
                 SparseRows<std::uint8_t, std::int64_t>, StringRows>;

template <class T>
using SparseRows32 = SparseRows<T, std::int32_t>;
template <class T>
using SparseRows64 = SparseRows<T, std::int64_t>;

// MACRO(ROWS) for every kind of row whose numbers are of type T.
#define TASKSIEVE_ROW_KINDS(MACRO, T) MACRO(DenseRows<T>) MACRO(BlockRows<T>) MACRO(SparseRows32<T>) MACRO(SparseRows64<T>)

// Strings are trained on single-precision tables, everything else on doubles.
template <class Rows>
using TableOf = std::conditional_t<std::is_same_v<Rows, StringRows>, float, double>;

struct GraphRows {
    AnyRows any;

    index_t rows() const {
        return std::visit([](const auto &r) { return r.rows; }, any);
    }
    index_t features() const {
        return std::visit([](const auto &r) { return r.features; }, any);
    }
    bool strings() const { return std::holds_alternative<StringRows>(any); }
    bool packed() const {  // a copy without empty blocks
        return std::holds_alternative<BlockRows<double>>(any) || std::holds_alternative<BlockRows<float>>(any) ||
               std::holds_alternative<BlockRows<std::int8_t>>(any) ||
               std::holds_alternative<BlockRows<std::uint8_t>>(any);
    }
};

// The rows themselves, or a packed copy where a sample says that most of their blocks are empty: at most half as large,
// and several times faster to read in random order.
template <class T>
AnyRows packed_if_sparse(const DenseRows<T> &rows, int threads);

// ||x_r||^2 of every row.
void row_squares(const AnyRows &rows, int threads, double *out);

// Hashed features of strings, as rows of a CSR matrix that is neither sorted nor merged: index and value of each. Throws
// where a row has more of them than indptr leaves room for.
void hash_rows(const AnyRows &rows, int threads, const index_t *indptr, std::int32_t *indices, double *values);
void count_hashed(const AnyRows &rows, int threads, index_t *counts);

}  // namespace tasksieve
