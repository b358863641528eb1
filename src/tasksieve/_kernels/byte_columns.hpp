// Products of columns of bytes, 64 columns side by side: a number for each column in one register, and no sum across one.
#pragma once
#include "common.hpp"

namespace tasksieve {

// Whether this compiler turns columns into lines fast enough; elsewhere columns are multiplied one after the other.
#if defined(TASKSIEVE_GNU) && (defined(__clang__) || __GNUC__ >= 12)
#define TASKSIEVE_SHUFFLES 1
constexpr bool turns_bytes = true;
#else
constexpr bool turns_bytes = false;
#endif
constexpr index_t side_by_side = 64;

// The columns of a call: `columns` are the chosen ones, or null: they follow each other.
template <class T>
struct ByteColumns {
    const T *x;
    index_t rows;
    const index_t *columns;

    const T *at(index_t k) const { return x + (columns ? columns[k] : k) * rows; }
};

// out[v][k, t] = sum_i x[i, k]^power r[v][i] over the rows i of task t, for columns k of [begin, end); the first `squares`
// vectors multiply squared entries.
void byte_products(const ByteColumns<std::int8_t> &x, index_t begin, index_t end, const double *const *r,
                   index_t squares, index_t vectors, const index_t *offsets, index_t tasks, double *const *out);
void byte_products(const ByteColumns<std::uint8_t> &x, index_t begin, index_t end, const double *const *r,
                   index_t squares, index_t vectors, const index_t *offsets, index_t tasks, double *const *out);

}  // namespace tasksieve
