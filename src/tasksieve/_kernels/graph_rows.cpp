#include "graph_rows.hpp"

#include <cstring>
#include <stdexcept>

#include "parallel.hpp"

namespace tasksieve {

namespace {

template <class Function>
void each_row(const AnyRows &any, int threads, const Function &function) {
    std::visit(
        [&](const auto &source) {
            parallel_for(source.rows, 4096, threads, [&](index_t begin, index_t end) {
                auto rows = source;
                for (index_t r = begin; r < end; ++r) {
                    rows.load(r);
                    function(rows, r);
                }
            });
        },
        any);
}

// The blocks of four columns of a row with any bit set (so -0.0 counts, which does no harm): their number. The last
// block of a row ends with it and may overlap the one before; there it holds zeros.
template <class T>
TASKSIEVE_INLINE index_t pack_row(const T *row, index_t features, std::uint16_t *start, T *values) {
    constexpr index_t size = BlockRows<T>::size;
    index_t kept = 0, j = 0;
    for (; j + size <= features; j += size) {
        T part[size];
        unsigned char bytes[sizeof(part)], any = 0;
        std::memcpy(part, row + j, sizeof(part));
        std::memcpy(bytes, part, sizeof(part));
        for (size_t k = 0; k < sizeof(part); ++k) any |= bytes[k];
        start[kept] = static_cast<std::uint16_t>(j);
        std::memcpy(values + size * kept, part, sizeof(part));
        kept += any != 0;
    }
    if (j < features) {
        const index_t from = features - size;
        start[kept] = static_cast<std::uint16_t>(from);
        for (index_t k = 0; k < size; ++k) values[size * kept + k] = from + k < j ? T(0) : row[from + k];
        ++kept;
    }
    return kept;
}

#define TASKSIEVE_PACK(T)                                                                                         \
    TASKSIEVE_MULTIVERSION index_t pack(const T *row, index_t features, std::uint16_t *start, T *values) {            \
        return pack_row(row, features, start, values);                                                                \
    }
TASKSIEVE_STORED_TYPES(TASKSIEVE_PACK)

}  // namespace

template <class T>
AnyRows packed_if_sparse(const DenseRows<T> &dense, int threads) {
    using Packed = BlockRows<T>;
    constexpr index_t sampled = 256, narrowest = 64, widest = 1 << 16;
    constexpr double fullest = 0.5;
    const index_t rows = dense.rows, features = dense.features;
    if (!rows || features < narrowest || features > widest) return dense;
    const index_t most = features / Packed::size + 1;
    std::vector<std::uint16_t> start(most);
    std::vector<T> values(most * Packed::size);
    const index_t looks = std::min(rows, sampled);
    index_t kept = 0;
    for (index_t k = 0; k < looks; ++k)
        kept += pack(dense.x + k * rows / looks * features, features, start.data(), values.data());
    if (static_cast<double>(kept) > fullest * static_cast<double>(looks * most)) return dense;
    auto store = std::make_shared<typename Packed::Store>();
    store->begin.resize(rows);
    store->count.resize(rows);
    store->start.reset(new std::uint16_t[rows * most]);
    store->values.reset(new T[rows * most * Packed::size]);
    const index_t piece = std::max<index_t>(512, (rows + 15) / 16);
    parallel_for(rows, piece, threads, [&](index_t begin, index_t end) {
        index_t at = begin * most;
        for (index_t r = begin; r < end; ++r) {
            store->begin[r] = at;
            store->count[r] = pack(dense.x + r * features, features, store->start.get() + at,
                                   store->values.get() + at * Packed::size);
            at += store->count[r];
        }
    });
    for (const index_t count : store->count) store->blocks += count;
    Packed packed;
    packed.rows = rows;
    packed.features = features;
    packed.store = std::move(store);
    return packed;
}
#define TASKSIEVE_PACKED(T) template AnyRows packed_if_sparse(const DenseRows<T> &, int);
TASKSIEVE_STORED_TYPES(TASKSIEVE_PACKED)

void row_squares(const AnyRows &any, int threads, double *out) {
    each_row(any, threads, [&](const auto &rows, index_t r) { out[r] = rows.square(); });
}

void count_hashed(const AnyRows &any, int threads, index_t *counts) {
    each_row(any, threads, [&](const auto &rows, index_t r) {
        if constexpr (std::is_same_v<std::decay_t<decltype(rows)>, StringRows>) counts[r] = rows.begin[rows.degree];
    });
}

void hash_rows(const AnyRows &any, int threads, const index_t *indptr, std::int32_t *indices, double *values) {
    each_row(any, threads, [&](const auto &rows, index_t r) {
        if constexpr (std::is_same_v<std::decay_t<decltype(rows)>, StringRows>) {
            if (rows.begin[rows.degree] > indptr[r + 1] - indptr[r])
                throw std::invalid_argument("indptr leaves too little room for the features of a string");
            for (int k = 0; k < rows.degree; ++k)
                for (index_t p = rows.begin[k]; p < rows.begin[k + 1]; ++p) {
                    indices[indptr[r] + p] = static_cast<std::int32_t>(rows.index[p]);
                    values[indptr[r] + p] = static_cast<double>(rows.weight[k]);
                }
        }
    });
}

}  // namespace tasksieve
