#include "cox.hpp"

#include "parallel.hpp"

#include <cmath>

namespace tasksieve {

namespace {

// Of mean_i: what is left of a pivot. Constants of a block are not determined, so that its last one is zero but for
// rounding; a little more there changes no gradient.
constexpr double kLeast = 1e-9;
constexpr index_t kBeside = 4;  // columns at a time

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

void risk_columns(const RiskRows &rows, const index_t *task, index_t tasks, const double *diagonal, const double *below,
                  const double *beside, const double *x, index_t x_rows, const index_t *columns, index_t count,
                  const index_t *source, const index_t *row, const double *scale, int threads, double *out,
                  index_t out_rows, double *squares) {
    const double *w = rows.weights;
    // Columns side by side: each is one chain of additions, which a processor follows as fast as several.
    parallel_for((count + kBeside - 1) / kBeside, 2, threads, [&](index_t begin, index_t end) {
        for (index_t group = begin; group < end; ++group) {
            const index_t first = group * kBeside, width = std::min(kBeside, count - first);
            const double *from[kBeside];
            double *to[kBeside];
            for (index_t c = 0; c < kBeside; ++c) {
                const index_t k = first + std::min(c, width - 1);  // the last one again in place of those missing
                from[c] = x + columns[k] * x_rows;
                to[c] = out + k * out_rows;
            }
            std::fill(squares + first * tasks, squares + (first + width) * tasks, 0.0);
            for (index_t b = 0; b < rows.blocks; ++b) {
                double later[kBeside] = {}, own[kBeside] = {}, total[kBeside] = {};
                index_t tie = 0;
                for (index_t i = rows.starts[b + 1] - 1; i >= rows.starts[b]; --i) {
                    if (rows.tie[i] != tie) {
                        for (index_t c = 0; c < kBeside; ++c) later[c] += own[c], own[c] = 0.0;
                        tie = rows.tie[i];
                    }
                    double *sums = tie == 0 ? later : own;
                    const index_t at = source[i], there = row[i];
                    for (index_t c = 0; c < kBeside; ++c) {
                        const double v = from[c][at] * scale[i];
                        const double found = diagonal[i] * v - below[i] * later[c] - beside[i] * own[c];
                        to[c][there] = found;
                        total[c] += found * found;
                        sums[c] += w[i] * v;
                    }
                }
                for (index_t c = 0; c < width; ++c) squares[(first + c) * tasks + task[b]] += total[c];
            }
        }
    });
}

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
