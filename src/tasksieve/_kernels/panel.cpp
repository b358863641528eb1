#include "panel.hpp"

#include "blas.hpp"

// A library's matrix product copies both factors into blocks of its own before it multiplies; with some tens of vectors
// that costs as much as the products. Here four columns are read where they lie, and their products with up to 48
// vectors are summed in registers. The wide version is chosen when the program runs.
#if defined(TASKSIEVE_GNU) && defined(__x86_64__) && !defined(_MSC_VER)
#define TASKSIEVE_WIDE 1
#endif

namespace tasksieve {

namespace {

bool allowed = true;
constexpr index_t lanes = 8;

#ifdef TASKSIEVE_WIDE
typedef double Lanes __attribute__((vector_size(64), aligned(8), may_alias));

constexpr index_t most_registers = 6;  // vectors of 8 for each of four columns: 24 sums, 4 factors and a row of R
constexpr index_t row_block = 64;      // rows of R that stay in the first-level cache

// sums[c, :] += sum over a block of rows i of column_c[i step] r[i, :], for `Columns` columns and V registers.
template <int Columns, int V>
__attribute__((target("avx512f"), always_inline)) inline void tile(const double *const *columns, index_t step,
                                                                   index_t begin, index_t end, const double *r,
                                                                   index_t width, double *sums) {
    Lanes sum[Columns][V];
    for (int c = 0; c < Columns; ++c)
        for (int v = 0; v < V; ++v) sum[c][v] = *reinterpret_cast<const Lanes *>(sums + c * width + v * lanes);
    for (index_t i = begin; i < end; ++i) {
        const double *row = r + i * width;
        Lanes factor[Columns];
        for (int c = 0; c < Columns; ++c) {
            const double x = columns[c][i * step];
            factor[c] = Lanes{x, x, x, x, x, x, x, x};
        }
        for (int v = 0; v < V; ++v) {
            const Lanes values = *reinterpret_cast<const Lanes *>(row + v * lanes);
            for (int c = 0; c < Columns; ++c) sum[c][v] += factor[c] * values;
        }
    }
    for (int c = 0; c < Columns; ++c)
        for (int v = 0; v < V; ++v) *reinterpret_cast<Lanes *>(sums + c * width + v * lanes) = sum[c][v];
}

template <int Columns>
__attribute__((target("avx512f"), always_inline)) inline void tiles(index_t registers, const double *const *columns,
                                                                    index_t step, index_t begin, index_t end,
                                                                    const double *r, index_t width, double *sums) {
    // Evenly filled parts, each of as many registers as there is room for.
    for (index_t parts = (registers + most_registers - 1) / most_registers; parts > 0; --parts) {
        const index_t count = (registers + parts - 1) / parts;
        switch (count) {
            case 1: tile<Columns, 1>(columns, step, begin, end, r, width, sums); break;
            case 2: tile<Columns, 2>(columns, step, begin, end, r, width, sums); break;
            case 3: tile<Columns, 3>(columns, step, begin, end, r, width, sums); break;
            case 4: tile<Columns, 4>(columns, step, begin, end, r, width, sums); break;
            case 5: tile<Columns, 5>(columns, step, begin, end, r, width, sums); break;
            default: tile<Columns, 6>(columns, step, begin, end, r, width, sums); break;
        }
        registers -= count;
        r += count * lanes;
        sums += count * lanes;
    }
}

template <int Columns>
__attribute__((target("avx512f"))) void few_columns(const double *const *columns, index_t rows, const double *r,
                                                    index_t width, double *sums) {
    std::fill(sums, sums + Columns * width, 0.0);
    for (index_t begin = 0; begin < rows; begin += row_block)
        tiles<Columns>(width / lanes, columns, 1, begin, std::min(rows, begin + row_block), r, width, sums);
}

// sums[c, j] = sum_k r[k, c] r[k, j] for the registers j from that of c on; r is padded, `rows` x `width`.
__attribute__((target("avx512f"))) void upper_gram(const double *r, index_t rows, index_t width, double *sums) {
    std::fill(sums, sums + width * width, 0.0);
    for (index_t begin = 0; begin < rows; begin += row_block)
        for (index_t c = 0; c < width; c += 4) {
            const index_t first = c / lanes * lanes;
            const double *columns[4] = {r + c, r + c + 1, r + c + 2, r + c + 3};
            tiles<4>((width - first) / lanes, columns, width, begin, std::min(rows, begin + row_block), r + first, width,
                     sums + c * width + first);
        }
}
#endif

}  // namespace

bool wide_registers() {
#ifdef TASKSIEVE_WIDE
    static const bool able = __builtin_cpu_supports("avx512f");
    return able && allowed;
#else
    return false;
#endif
}

void allow_wide_registers(bool allow) { allowed = allow; }

namespace {

// The first element on a boundary of cache lines: a load that straddles two of them counts twice.
index_t aligned_start(const std::vector<double> &memory) {
    return (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64 / sizeof(double);
}

index_t padded(index_t n) { return (n + lanes - 1) / lanes * lanes; }

constexpr index_t largest_gram = 128;  // larger ones are better left to BLAS

}  // namespace

Panel::Panel(const double *r, index_t rows, index_t vectors, bool by_rows)
    : rows_(rows), vectors_(vectors), width_(padded(vectors)), by_rows_(by_rows), plain_(r) {
    if (!wide_registers()) return;
    padded_.assign(rows * width_ + lanes, 0.0);
    start_ = aligned_start(padded_);
    double *target = padded_.data() + start_;
    for (index_t i = 0; i < rows; ++i)
        for (index_t t = 0; t < vectors; ++t) target[i * width_ + t] = by_rows ? r[i * vectors + t] : r[t * rows + i];
}

void Panel::products(const double *const *columns, index_t count, double *out) const {
    if (count == 0) return;
#ifdef TASKSIEVE_WIDE
    if (!padded_.empty()) {
        std::vector<double> sums(4 * width_);
        const double *r = padded_.data() + start_;
        index_t k = 0;
        for (; k + 4 <= count; k += 4) {
            few_columns<4>(columns + k, rows_, r, width_, sums.data());
            for (index_t c = 0; c < 4; ++c)
                std::copy_n(sums.data() + c * width_, vectors_, out + (k + c) * vectors_);
        }
        for (; k < count; ++k) {
            few_columns<1>(columns + k, rows_, r, width_, sums.data());
            std::copy_n(sums.data(), vectors_, out + k * vectors_);
        }
        return;
    }
#endif
    // Neighbouring columns are multiplied where they lie, others are gathered first.
    bool together = true;
    for (index_t k = 1; k < count && together; ++k) together = columns[k] == columns[k - 1] + rows_;
    std::vector<double> buffer;
    const double *source = columns[0];
    if (!together) {
        buffer.resize(count * rows_);
        for (index_t k = 0; k < count; ++k) std::copy_n(columns[k], rows_, buffer.data() + k * rows_);
        source = buffer.data();
    }
    gemm(by_rows_ ? 'N' : 'T', 'N', vectors_, count, rows_, plain_, by_rows_ ? vectors_ : rows_, source, rows_, 0.0,
         out, vectors_);
}

void add_outer_products(const double *const *vectors, const double *weights, index_t count, index_t n, double *k) {
    if (count == 0 || n == 0) return;
    const bool wide = wide_registers() && n <= largest_gram;
    const index_t width = wide ? padded(n) : n;
    std::vector<double> memory(count * width + lanes), sums;
    double *scaled = memory.data() + aligned_start(memory);
    for (index_t j = 0; j < count; ++j) {
        const double root = std::sqrt(weights[j]);
        for (index_t i = 0; i < n; ++i) scaled[j * width + i] = root * vectors[j][i];
        std::fill(scaled + j * width + n, scaled + (j + 1) * width, 0.0);
    }
#ifdef TASKSIEVE_WIDE
    if (wide) {
        sums.resize(width * width);
        upper_gram(scaled, count, width, sums.data());
        for (index_t c = 0; c < n; ++c)
            for (index_t i = c; i < n; ++i) k[c * n + i] += sums[c * width + i];
        return;
    }
#endif
    gemm('N', 'T', n, n, count, scaled, n, scaled, n, 1.0, k, n);
}

}  // namespace tasksieve
