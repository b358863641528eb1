#include "sorted_columns.hpp"

#include "parallel.hpp"

namespace tasksieve {

namespace {

template <class T>
void one_column(const T *from, const index_t *order, index_t begin, index_t end, double shift, double *out) {
    if (order)
        for (index_t i = begin; i < end; ++i) out[i] = static_cast<double>(from[order[i]]) - shift;
    else
        for (index_t i = begin; i < end; ++i) out[i] = static_cast<double>(from[i]) - shift;
}

void any_column(const StoredColumn &column, const index_t *order, index_t begin, index_t end, double shift,
                double *out) {
    using Type = StoredColumn::Type;
    const auto go = [&](auto kind) {
        one_column(static_cast<const decltype(kind) *>(column.data), order, begin, end, shift, out);
    };
    switch (column.type) {
        case Type::f64: return go(double());
        case Type::f32: return go(float());
        case Type::i8: return go(std::int8_t());
        case Type::i16: return go(std::int16_t());
        case Type::i32: return go(std::int32_t());
        case Type::i64: return go(std::int64_t());
        case Type::u8: return go(std::uint8_t());
        case Type::u16: return go(std::uint16_t());
        case Type::u32: return go(std::uint32_t());
        case Type::u64: return go(std::uint64_t());
    }
}

}  // namespace

void sorted_columns(const StoredColumn *columns, index_t count, const index_t *order, index_t rows,
                    const index_t *offsets, index_t tasks, const double *shifts, int threads, double *out) {
    parallel_for(count, 1, threads, [&](index_t first, index_t last) {
        for (index_t j = first; j < last; ++j) {
            double *own = out + j * rows;
            if (!shifts) {
                any_column(columns[j], order, 0, rows, 0.0, own);
                continue;
            }
            for (index_t t = 0; t < tasks; ++t)
                if (offsets[t] < offsets[t + 1])
                    any_column(columns[j], order, offsets[t], offsets[t + 1], shifts[t * count + j], own);
        }
    });
}

}  // namespace tasksieve
