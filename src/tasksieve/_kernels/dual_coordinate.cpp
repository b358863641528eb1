#include "dual_coordinate.hpp"

#include "descent.hpp"
#include "graph_losses.hpp"
#include "parallel.hpp"

namespace tasksieve {
namespace {

// Derivative and curvature (per unit of c) of a hinge max(0, u) whose kink is rounded over a width mu.
TASKSIEVE_INLINE double ramp(double u, double mu) {
    return u >= 0.5 * mu ? 1.0 : u <= -0.5 * mu ? 0.0 : u / mu + 0.5;
}

TASKSIEVE_INLINE void smoothed(int loss, double epsilon, double mu, double z, double y, double &first, double &second) {
    switch (loss) {
        case HINGE: {
            const double s = ramp(1.0 - y * z, mu);
            first = -y * s;
            second = s > 0.0 && s < 1.0 ? 1.0 / mu : 0.0;
            return;
        }
        case SQUARED_HINGE: {
            const double u = 1.0 - y * z;
            first = u > 0 ? -2.0 * y * u : 0.0;
            second = u > 0 ? 2.0 : 0.0;
            return;
        }
        case LOGISTIC: {
            const double s = sigmoid(-y * z);
            first = -y * s;
            second = s * (1.0 - s);
            return;
        }
        case EPSILON: {
            const double r = z - y, up = ramp(r - epsilon, mu), down = ramp(-r - epsilon, mu);
            first = up - down;
            second = (up > 0.0 && up < 1.0 ? 1.0 / mu : 0.0) + (down > 0.0 && down < 1.0 ? 1.0 / mu : 0.0);
            return;
        }
        default: {
            const double r = z - y, over = r > epsilon ? r - epsilon : r < -epsilon ? r + epsilon : 0.0;
            first = 2.0 * over;
            second = std::fabs(r) > epsilon || epsilon == 0.0 ? 2.0 : 0.0;
        }
    }
}

TASKSIEVE_INLINE double true_loss(int loss, double epsilon, double z, double y) {
    switch (loss) {
        case HINGE: return std::max(1.0 - y * z, 0.0);
        case SQUARED_HINGE: {
            const double u = std::max(1.0 - y * z, 0.0);
            return u * u;
        }
        case LOGISTIC: return log1p_exp(-y * z);
        default: {
            const double over = std::max(std::fabs(z - y) - epsilon, 0.0);
            return loss == EPSILON ? over : over * over;
        }
    }
}

TASKSIEVE_MULTIVERSION void loss_range(const GraphProblem &p, const double *scores, double mu, index_t begin,
                                       index_t end, double *beta, double *curvature, double *loss, double *terms) {
    double total = 0.0, gap = 0.0;
    for (index_t i = begin; i < end; ++i) {
        double first = 0.0, second = 0.0;
        const double z = scores[i], y = p.y[i], c = p.c[i];
        smoothed(p.loss, p.epsilon, mu, z, y, first, second);
        beta[i] = c > 0 ? -c * first : 0.0;
        curvature[i] = c * second;
        if (c > 0) {
            total += c * true_loss(p.loss, p.epsilon, z, y);
            gap += fenchel(p.loss, p.epsilon, z, y, c, beta[i]);
        }
    }
    *loss = total;
    *terms = gap;
}

TASKSIEVE_MULTIVERSION void slope_range(const GraphProblem &p, const double *scores, const double *direction,
                                        double step, double mu, index_t begin, index_t end, double *slope,
                                        double *bend) {
    double s = 0.0, b = 0.0;
    for (index_t i = begin; i < end; ++i) {
        double first = 0.0, second = 0.0;
        smoothed(p.loss, p.epsilon, mu, scores[i] + step * direction[i], p.y[i], first, second);
        const double q = p.c[i] * direction[i];
        s += first * q;
        b += second * q * direction[i];
    }
    *slope = s;
    *bend = b;
}

constexpr index_t CHUNK = 8192;

}  // namespace

template <class W>
DescentReport dual_descent(const AnyRows &any, const GraphProblem &p, const Descent<W> &descent) {
    return std::visit(
        [&](const auto &rows) -> DescentReport {
            if constexpr (std::is_same_v<TableOf<std::decay_t<decltype(rows)>>, W>) return run(rows, p, descent);
            return {};  // the bindings do not let a table of the wrong kind come here
        },
        any);
}
template DescentReport dual_descent(const AnyRows &, const GraphProblem &, const Descent<double> &);
template DescentReport dual_descent(const AnyRows &, const GraphProblem &, const Descent<float> &);

template <class W>
void graph_pass(const AnyRows &any, const GraphProblem &p, const W *w, const double *beta, int threads, double *scores,
                double *v) {
    if (v) std::fill(v, v + p.tasks * p.width, 0.0);
    std::visit(
        [&](const auto &source) {
            using Rows = std::decay_t<decltype(source)>;
            if constexpr (std::is_same_v<TableOf<Rows>, W>) {
                // Pieces of tasks, each with a sum of its own where that is small, whole tasks where it is not: the
                // order of the additions does not depend on the number of threads.
                struct Piece {
                    index_t task, begin, end;
                };
                const bool cut = !v || p.width <= 4096;
                std::vector<Piece> pieces;
                for (index_t t = 0; t < p.tasks; ++t)
                    for (index_t b = p.offsets[t]; b < p.offsets[t + 1]; b += CHUNK) {
                        pieces.push_back({t, b, cut ? std::min(p.offsets[t + 1], b + CHUNK) : p.offsets[t + 1]});
                        if (!cut) break;
                    }
                const index_t count = static_cast<index_t>(pieces.size());
                std::vector<double> sums(cut && v ? count * p.width : 0);
                parallel_for(count, 1, threads, [&](index_t first, index_t last) {
                    auto rows = source;
                    for (index_t k = first; k < last; ++k) {
                        const Piece &piece = pieces[k];
                        double *out = !v ? nullptr : cut ? sums.data() + k * p.width : v + piece.task * p.width;
                        pass(rows, p, w ? w + piece.task * p.width : nullptr, beta, piece.begin, piece.end, scores, out);
                    }
                });
                if (cut && v)
                    for (index_t k = 0; k < count; ++k)
                        for (index_t j = 0; j < p.width; ++j)
                            v[pieces[k].task * p.width + j] += sums[k * p.width + j];
            }
        },
        any);
}
template void graph_pass(const AnyRows &, const GraphProblem &, const double *, const double *, int, double *, double *);
template void graph_pass(const AnyRows &, const GraphProblem &, const float *, const double *, int, double *, double *);

LossSums fenchel_sums(const GraphProblem &p, const double *scores, const double *beta) {
    LossSums total;
    for (index_t i = 0; i < p.samples; ++i) {
        if (!(p.c[i] > 0)) continue;
        total.loss += p.c[i] * true_loss(p.loss, p.epsilon, scores[i], p.y[i]);
        total.terms += std::max(fenchel(p.loss, p.epsilon, scores[i], p.y[i], p.c[i], beta[i]), 0.0);
    }
    return total;
}

namespace {

// w = M w in place, column by column: W holds V before. The sum of the squares of what is written.
template <class W>
TASKSIEVE_INLINE double couple_columns(const GraphProblem &p, W *w, index_t begin, index_t end, double *block) {
    constexpr index_t most = 256;
    double squares = 0.0;
    for (index_t first = begin; first < end; first += most) {
        const index_t count = std::min(most, end - first);
        for (index_t s = 0; s < p.tasks; ++s)
            for (index_t j = 0; j < count; ++j) block[s * most + j] = static_cast<double>(w[s * p.width + first + j]);
        for (index_t s = 0; s < p.tasks; ++s) {
            double sum[most] = {};
            for (index_t t = 0; t < p.tasks; ++t) {
                const double mst = p.m[s * p.tasks + t];
                if (mst == 0.0) continue;
                const double *from = block + t * most;
#pragma omp simd
                for (index_t j = 0; j < count; ++j) sum[j] += mst * from[j];
            }
            W *to = w + s * p.width + first;
            for (index_t j = 0; j < count; ++j) {
                to[j] = static_cast<W>(sum[j]);
                squares += sum[j] * sum[j];
            }
        }
    }
    return squares;
}

TASKSIEVE_MULTIVERSION double couple(const GraphProblem &p, double *w, index_t begin, index_t end, double *block) {
    return couple_columns(p, w, begin, end, block);
}
TASKSIEVE_MULTIVERSION double couple(const GraphProblem &p, float *w, index_t begin, index_t end, double *block) {
    return couple_columns(p, w, begin, end, block);
}

}  // namespace

template <class W>
TableSquares rebuild_table(const AnyRows &any, const GraphProblem &p, const double *beta, int threads, W *w) {
    TableSquares squares;
    if constexpr (std::is_same_v<W, double>) {
        graph_pass<double>(any, p, nullptr, beta, threads, nullptr, w);
    } else {  // sums in double precision, one task at a time: they are as large as two tables
        std::visit(
            [&](const auto &source) {
                using Rows = std::decay_t<decltype(source)>;
                if constexpr (std::is_same_v<TableOf<Rows>, W>) {
                    auto rows = source;
                    std::vector<double> v(p.width);
                    for (index_t t = 0; t < p.tasks; ++t) {
                        std::fill(v.begin(), v.end(), 0.0);
                        pass(rows, p, static_cast<const W *>(nullptr), beta, p.offsets[t], p.offsets[t + 1], nullptr, v.data());
                        for (index_t j = 0; j < p.width; ++j) {
                            w[t * p.width + j] = static_cast<W>(v[j]);
                            squares.v += v[j] * v[j];
                        }
                    }
                }
            },
            any);
    }
    if (p.tasks == 1 && p.m[0] == 1.0) {
        squares.w = squares.v;
        return squares;
    }
    constexpr index_t columns = 8192;
    std::vector<double> parts((p.width + columns - 1) / columns);
    parallel_for(p.width, columns, threads, [&](index_t begin, index_t end) {
        std::vector<double> block(p.tasks * 256);
        parts[begin / columns] = couple(p, w, begin, end, block.data());
    });
    for (const double part : parts) squares.w += part;
    return squares;
}
template TableSquares rebuild_table(const AnyRows &, const GraphProblem &, const double *, int, double *);
template TableSquares rebuild_table(const AnyRows &, const GraphProblem &, const double *, int, float *);

namespace {

// Two sums over the samples, chunk by chunk: the order of the additions does not depend on the number of threads.
template <class Range>
std::pair<double, double> chunk_sums(index_t samples, int threads, const Range &range) {
    std::vector<double> sums(2 * ((samples + CHUNK - 1) / CHUNK));
    parallel_for(samples, CHUNK, threads, [&](index_t begin, index_t end) {
        double *at = sums.data() + 2 * (begin / CHUNK);
        range(begin, end, at, at + 1);
    });
    std::pair<double, double> total{0.0, 0.0};
    for (size_t k = 0; k < sums.size(); k += 2) {
        total.first += sums[k];
        total.second += sums[k + 1];
    }
    return total;
}

}  // namespace

LossSums smoothed_loss(const GraphProblem &p, const double *scores, double mu, int threads, double *beta,
                       double *curvature) {
    const auto [loss, terms] = chunk_sums(p.samples, threads, [&](index_t begin, index_t end, double *a, double *b) {
        loss_range(p, scores, mu, begin, end, beta, curvature, a, b);
    });
    return {loss, terms};
}

std::pair<double, double> smoothed_slope(const GraphProblem &p, const double *scores, const double *direction,
                                         double step, double mu, int threads) {
    return chunk_sums(p.samples, threads, [&](index_t begin, index_t end, double *a, double *b) {
        slope_range(p, scores, direction, step, mu, begin, end, a, b);
    });
}

}  // namespace tasksieve
