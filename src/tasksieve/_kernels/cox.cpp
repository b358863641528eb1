#include "cox.hpp"

#include "parallel.hpp"

#include <cmath>

namespace tasksieve {

namespace {

// Of mean_i: what is left of a pivot. Constants of a block are not determined, so that its last one is zero but for
// rounding; a little more there changes no gradient.
constexpr double kLeast = 1e-9;

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
    parallel_for(count, 8, threads, [&](index_t begin, index_t end) {
        for (index_t k = begin; k < end; ++k) {
            const double *from = x + columns[k] * x_rows;
            double *to = out + k * out_rows, *square = squares + k * tasks;
            std::fill(square, square + tasks, 0.0);
            for (index_t b = 0; b < rows.blocks; ++b) {
                double later = 0.0, own = 0.0, total = 0.0;
                index_t tie = 0;
                for (index_t i = rows.starts[b + 1] - 1; i >= rows.starts[b]; --i) {
                    if (rows.tie[i] != tie) {
                        later += own;
                        own = 0.0;
                        tie = rows.tie[i];
                    }
                    const double v = from[source[i]] * scale[i];
                    const double found = diagonal[i] * v - below[i] * later - beside[i] * own;
                    to[row[i]] = found;
                    total += found * found;
                    (tie == 0 ? later : own) += w[i] * v;
                }
                square[task[b]] += total;
            }
        }
    });
}

}  // namespace tasksieve
