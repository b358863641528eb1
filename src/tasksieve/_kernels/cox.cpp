#include "cox.hpp"

#include "parallel.hpp"

#include <cmath>

namespace tasksieve {

namespace {

// Of mean_i: what is left of a pivot. Constants of a block are not determined, so that its last one is zero but for
// rounding; a little more there changes no gradient.
constexpr double kLeast = 1e-9;
constexpr index_t kBeside = 8;  // columns at a time
constexpr index_t kRows = 512;  // rows at a time: cells that stay in the nearest cache

}  // namespace

void risk_factor(const RiskRows &rows, const double *mean, const double *near_, const double *far_,
                 const double *residual, double *diagonal, double *below, double *beside, double *right) {
    const double *w = rows.weights;
    for (index_t b = 0; b < rows.blocks; ++b) {
        // sums over the rows before: of below^2, of below right; and over those of the same tied deaths
        double squares = 0.0, drawn = 0.0;
        double own_squares = 0.0, own_products = 0.0, own_below = 0.0, own_drawn = 0.0, own_far = 0.0;
        index_t tie = 0;
        for (index_t i = rows.starts[b]; i < rows.starts[b + 1]; ++i) {
            if (rows.tie[i] != tie) {
                squares += own_below;
                drawn += own_far;
                own_squares = own_products = own_below = own_drawn = own_far = 0.0;
                tie = rows.tie[i];
            }
            const double held = near_[i] + squares + own_squares;
            const double pivot = std::max(mean[i] - w[i] * w[i] * held, kLeast * mean[i]);
            const double root = std::sqrt(pivot);
            diagonal[i] = root;
            beside[i] = w[i] * held / root;
            below[i] = w[i] * (far_[i] + squares + own_products) / root;
            right[i] = (residual[i] + w[i] * (drawn + own_drawn)) / root;
            if (tie == 0) {
                squares += below[i] * below[i];
                drawn += below[i] * right[i];
            } else {
                own_squares += beside[i] * beside[i];
                own_products += below[i] * beside[i];
                own_below += below[i] * below[i];
                own_drawn += beside[i] * right[i];
                own_far += below[i] * right[i];
            }
        }
    }
}

namespace {

// Rows of a block from low to high, and where to find and to put their cells.
struct Stretch {
    index_t block, low, high;
};

// Positions of the rows of each stretch, in the order in which they lie in memory.
std::vector<index_t> memory_order(const std::vector<Stretch> &stretches, const index_t *where, index_t n) {
    std::vector<index_t> order(n);
    for (const Stretch &part : stretches) {
        for (index_t i = part.low; i < part.high; ++i) order[i] = i;
        std::sort(order.begin() + part.low, order.begin() + part.high,
                  [where](index_t i, index_t j) { return where[i] < where[j]; });
    }
    return order;
}

// The cells of some columns become those of L'x. `later` and `own` are sums over the rows that follow, of all and of the
// same tied deaths `tie`. Columns lie side by side: each is a chain of additions, and a processor follows eight as fast
// as one.
template <class T>
TASKSIEVE_INLINE void times_factor(const RiskRows &rows, const double *diagonal, const double *below,
                                   const double *beside, index_t low, index_t high, double *later, double *own,
                                   index_t &tie, double *total, double (*cells)[kBeside]) {
    for (index_t i = high - 1; i >= low; --i) {
        if (rows.tie[i] != tie) {
            for (index_t c = 0; c < kBeside; ++c) later[c] += own[c], own[c] = 0.0;
            tie = rows.tie[i];
        }
        double *v = cells[i - low];
        const double d = diagonal[i], down = below[i], side = beside[i], weight = rows.weights[i];
        const double to_later = tie == 0 ? weight : 0.0, to_own = weight - to_later;
#pragma omp simd
        for (index_t c = 0; c < kBeside; ++c) {
            const double found = static_cast<T>(d * v[c] - down * later[c] - side * own[c]);
            later[c] += to_later * v[c];
            own[c] += to_own * v[c];
            total[c] += found * found;
            v[c] = found;
        }
    }
}

// All rows of some columns, up to kBeside of them.
template <class T>
TASKSIEVE_INLINE void risk_columns_beside(const RiskRows &rows, const std::vector<Stretch> &stretches,
                                          const index_t *reading, const index_t *writing, const index_t *task,
                                          index_t tasks, const double *diagonal, const double *below,
                                          const double *beside, const index_t *source, const index_t *row,
                                          const double *scale, const double *const *from, T *const *to, index_t width,
                                          double *squares) {
    alignas(64) double cells[kRows][kBeside], later[kBeside], own[kBeside], total[kBeside];
    index_t tie = 0;
    for (const Stretch &part : stretches) {
        if (part.high == rows.starts[part.block + 1]) {  // the last rows of a block come first
            tie = 0;
            for (index_t c = 0; c < kBeside; ++c) later[c] = own[c] = total[c] = 0.0;
        }
        for (index_t k = part.low; k < part.high; ++k) {
            const index_t i = reading[k], at = source[i];
            for (index_t c = 0; c < kBeside; ++c) cells[i - part.low][c] = from[c][at] * scale[i];
        }
        times_factor<T>(rows, diagonal, below, beside, part.low, part.high, later, own, tie, total, cells);
        for (index_t k = part.low; k < part.high; ++k) {
            const index_t i = writing[k], at = row[i];
            for (index_t c = 0; c < kBeside; ++c) to[c][at] = static_cast<T>(cells[i - part.low][c]);
        }
        if (part.low == rows.starts[part.block])
            for (index_t c = 0; c < width; ++c) squares[c * tasks + task[part.block]] += total[c];
    }
}

#define TASKSIEVE_RISK_COLUMNS_BESIDE(T)                                                                             \
    TASKSIEVE_MULTIVERSION void some_risk_columns(                                                                   \
        const RiskRows &rows, const std::vector<Stretch> &stretches, const index_t *reading, const index_t *writing, \
        const index_t *task, index_t tasks, const double *diagonal, const double *below, const double *beside,       \
        const index_t *source, const index_t *row, const double *scale, const double *const *from, T *const *to,     \
        index_t width, double *squares) {                                                                            \
        risk_columns_beside<T>(rows, stretches, reading, writing, task, tasks, diagonal, below, beside, source, row, \
                               scale, from, to, width, squares);                                                     \
    }
TASKSIEVE_RISK_COLUMNS_BESIDE(double)
TASKSIEVE_RISK_COLUMNS_BESIDE(float)

}  // namespace

template <class T>
void risk_columns(const RiskRows &rows, const index_t *task, index_t tasks, const double *diagonal, const double *below,
                  const double *beside, const double *x, index_t x_rows, const index_t *columns, index_t count,
                  const index_t *source, const index_t *row, const double *scale, int threads, T *out,
                  index_t out_rows, double *squares) {
    std::vector<Stretch> stretches;
    for (index_t b = 0; b < rows.blocks; ++b)
        for (index_t high = rows.starts[b + 1], low; high > rows.starts[b]; high = low) {
            low = std::max(rows.starts[b], high - kRows);
            stretches.push_back({b, low, high});
        }
    const index_t n = rows.blocks ? rows.starts[rows.blocks] : 0;
    // columns are read and written from their beginning to their end, as memory likes it
    const std::vector<index_t> reading = memory_order(stretches, source, n), writing = memory_order(stretches, row, n);
    parallel_for((count + kBeside - 1) / kBeside, 1, threads, [&](index_t begin, index_t end) {
        for (index_t group = begin; group < end; ++group) {
            const index_t first = group * kBeside, width = std::min(kBeside, count - first);
            const double *from[kBeside];
            T *to[kBeside];
            for (index_t c = 0; c < kBeside; ++c) {
                const index_t k = first + std::min(c, width - 1);  // the last one again in place of those missing
                from[c] = x + columns[k] * x_rows;
                to[c] = out + k * out_rows;
            }
            std::fill(squares + first * tasks, squares + (first + width) * tasks, 0.0);
            some_risk_columns(rows, stretches, reading.data(), writing.data(), task, tasks, diagonal, below, beside,
                              source, row, scale, from, to, width, squares + first * tasks);
        }
    });
}

#define TASKSIEVE_RISK_COLUMNS(T)                                                                                     \
    template void risk_columns<T>(const RiskRows &, const index_t *, index_t, const double *, const double *,         \
                                  const double *, const double *, index_t, const index_t *, index_t, const index_t *, \
                                  const index_t *, const double *, int, T *, index_t, double *);
TASKSIEVE_RISK_COLUMNS(double)
TASKSIEVE_RISK_COLUMNS(float)

DivergenceSums divergence_sums(const double *x, const double *y, const double *log_y, index_t count) {
    DivergenceSums sums{0.0, 0.0, 0.0};
    for (index_t i = 0; i < count; ++i) {
        if (!(x[i] > 0.0)) {
            sums.value += y[i];
            sums.first += y[i];
            sums.second += y[i];
            continue;
        }
        const double t = (log_y ? log_y[i] : std::log(y[i])) - std::log(x[i]), size = std::abs(t);
        const double found = size < 1.0 ? x[i] * (std::expm1(t) - t) : (y[i] - x[i]) - x[i] * t;
        sums.value += std::max(found, 0.0);
        sums.first += std::abs(y[i] - x[i]) + x[i] * size;
        sums.second += 2.0 * x[i] * (1.0 + size) + y[i];
    }
    return sums;
}

}  // namespace tasksieve
