#include "dual_coordinate.hpp"

#include <limits>

#include "losses.hpp"
#include "parallel.hpp"

namespace tasksieve {
namespace {

struct Random {  // splitmix64
    std::uint64_t state;
    std::uint64_t next() {
        std::uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    index_t below(index_t n) {
        return static_cast<index_t>(high_product(next(), static_cast<std::uint64_t>(n)));
    }
    void shuffle(index_t *values, index_t n) {
        for (index_t k = n - 1; k > 0; --k) std::swap(values[k], values[below(k + 1)]);
    }
};

double x_log_x(double x) { return x > 0 ? x * std::log(x) : 0.0; }

// Root of h(u) = margin + q c (sigma(u) - share) + u: the logistic coordinate in the logit u of a / c.
double logistic_root(double margin, double q, double c, double share) {
    const double reach = q * c;
    double low = -margin - reach * (1.0 - share), high = -margin + reach * share;
    double u = share > 0 && share < 1 ? std::log(share / (1.0 - share)) : 0.5 * (low + high);
    if (!(u > low && u < high)) u = 0.5 * (low + high);
    for (int k = 0; k < 100; ++k) {
        const double s = sigmoid(u), h = margin + reach * (s - share) + u;
        if (h > 0) high = u;
        else low = u;
        double next = u - h / (1.0 + reach * s * (1.0 - s));
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (std::fabs(next - u) <= 1e-13 * (1.0 + std::fabs(u))) return next;
        u = next;
    }
    return u;
}

// c l(z) + c l*(-beta / c) + beta z.
TASKSIEVE_INLINE double fenchel(int loss, double epsilon, double z, double y, double c, double beta) {
    switch (loss) {
        case HINGE: {
            const double g = y * z - 1.0;
            return y * beta * g + (g < 0 ? -c * g : 0.0);
        }
        case SQUARED_HINGE: {
            const double a = y * beta, u = 1.0 - y * z, over = u > 0 ? u : 0.0;
            return c * over * over - a * u + a * a / (4.0 * c);
        }
        case LOGISTIC: {
            const double a = y * beta, share = a / c;
            return c * (log1p_exp(-y * z) + x_log_x(share) + x_log_x(1.0 - share)) + a * y * z;
        }
        default: {
            const double g = z - y, over = std::max(std::fabs(g) - epsilon, 0.0), base = beta * g + epsilon * std::fabs(beta);
            return loss == EPSILON ? c * over + base : c * over * over + base + beta * beta / (4.0 * c);
        }
    }
}

struct Step {
    double beta = 0.0, projected = 0.0;
    bool rests = false;  // at a bound, with a gradient so large that shrinking takes it out
    bool held = false;   // at a bound, with a gradient that keeps it there for now
};

// The exact minimiser along one coordinate, and what shrinking wants to know about the point before it.
TASKSIEVE_INLINE Step coordinate_step(int loss, double epsilon, double z, double y, double c, double q, double beta,
                                      double lowest, double highest) {
    Step step;
    switch (loss) {
        case HINGE: {
            const double a = y * beta, g = y * z - 1.0;
            if (a <= 0.0) {
                step.projected = std::min(g, 0.0);
                step.rests = g > highest;
            } else if (a >= c) {
                step.projected = std::max(g, 0.0);
                step.rests = g < lowest;
            } else {
                step.projected = g;
            }
            step.held = (a <= 0.0 || a >= c) && step.projected == 0.0;
            step.beta = y * (q > 0 ? std::min(std::max(a - g / q, 0.0), c) : c);
            return step;
        }
        case SQUARED_HINGE: {
            const double a = y * beta, k = 0.5 / c, g = y * z - 1.0 + a * k;
            step.projected = a <= 0.0 ? std::min(g, 0.0) : g;
            step.rests = a <= 0.0 && g > highest;
            step.held = a <= 0.0 && g >= 0.0;
            step.beta = y * std::max(a - g / (q + k), 0.0);
            return step;
        }
        case LOGISTIC: {
            const double a = y * beta;
            step.beta = y * c * sigmoid(logistic_root(y * z, q, c, a / c));
            return step;
        }
        default: {
            const double k = loss == EPSILON ? 0.0 : 0.5 / c, top = loss == EPSILON ? c : std::numeric_limits<double>::infinity();
            const double g = z - y + beta * k, up = g + epsilon, down = g - epsilon, h = q + k;
            if (beta == 0.0) {
                step.projected = up < 0 ? up : down > 0 ? down : 0.0;
                step.rests = up > highest && down < lowest;
            } else if (beta >= top) {
                step.projected = std::max(up, 0.0);
                step.rests = up < lowest;
            } else if (beta <= -top) {
                step.projected = std::min(down, 0.0);
                step.rests = down > highest;
            } else {
                step.projected = beta > 0 ? up : down;
            }
            step.held = (beta == 0.0 || std::fabs(beta) >= top) && step.projected == 0.0;
            if (h > 0) {
                const double free = beta - g / h, cut = epsilon / h;
                const double soft = free > cut ? free - cut : free < -cut ? free + cut : 0.0;
                step.beta = std::min(std::max(soft, -top), top);
            } else {
                step.beta = y > epsilon ? c : y < -epsilon ? -c : 0.0;
            }
            return step;
        }
    }
}

// A sample found held at its bound is left out of the next epoch; if it still is, of the next three, then of the next
// seven each time, until a visit moves it: most visits would otherwise change nothing. One byte a sample: epochs still
// to be left out + 8 times how often in a row it was put to sleep.
constexpr int NAP = 8;
constexpr std::uint8_t RESTS = 255;
constexpr index_t COLUMNS = 1024;

// What a visit needs of a sample, in one place: visits jump about, and each place they jump to is fetched from far away.
struct alignas(32) Facts {
    double beta, y, c, square;
};

TASKSIEVE_INLINE std::uint8_t following_nap(int nap) {
    const int times = std::min(nap / NAP + 1, 3);
    return static_cast<std::uint8_t>(NAP * times + (1 << times) - 1);
}

template <class Rows, class W>
TASKSIEVE_INLINE DescentReport descend(Rows rows, const GraphProblem &p, const Descent<W> &descent) {
    const auto [beta, weights, active, counts, squares, max_epochs, target, low, high, seed] = descent;
    W *const w = weights;  // C++17: a lambda cannot capture a structured binding
    const double inf = std::numeric_limits<double>::infinity();
    double lowest = low, highest = high;
    DescentReport report;
    Random random{seed};
    std::vector<index_t> order, changed, awake;
    std::vector<double> change;
    for (index_t t = 0; t < p.tasks; ++t)
        if (p.offsets[t + 1] > p.offsets[t]) order.push_back(t);
    std::vector<std::uint8_t> naps(p.samples);
    std::vector<Facts> facts(p.samples);
    for (index_t i = 0; i < p.samples; ++i)
        facts[i] = {beta[i], p.y[i], p.c[i], squares ? squares[p.row_of ? p.row_of[i] : i] : 0.0};
    std::vector<index_t> moved(p.tasks, p.samples);  // changes in the task's last block
    const bool coupled = p.tasks > 1;
    std::vector<W> before(coupled ? p.width : 0);
    const index_t features = p.bias > 0 ? p.width - 1 : p.width;
    // The changes of task t so far, row by row, into the other tasks.
    auto spread = [&](index_t t) TASKSIEVE_INLINE_LAMBDA {
        for (size_t k = 0; k < changed.size(); ++k) {
            if (k + 4 < changed.size()) rows.prefetch(changed[k + 4]);
            rows.load(changed[k]);
            for (index_t s = 0; s < p.tasks; ++s) {
                const double mst = p.m[s * p.tasks + t];
                if (s == t || mst == 0.0) continue;
                rows.add(mst * change[k], w + s * p.width);
                if (p.bias > 0) w[s * p.width + features] += static_cast<W>(mst * change[k] * p.bias);
            }
        }
        changed.clear();
        change.clear();
    };
    while (report.epochs < max_epochs) {
        ++report.epochs;
        double estimate = 0.0, least = inf, most = -inf;
        random.shuffle(order.data(), static_cast<index_t>(order.size()));
        for (const index_t t : order) {
            index_t *ids = active + p.offsets[t];
            index_t count = 0;
            bool any_rest = false;
            // Who is awake is found out first, in the order of memory: then nobody is fetched in vain, and all visits are
            // fetched ahead.
            awake.clear();
            for (index_t k = 0; k < counts[t]; ++k) {
                std::uint8_t &nap = naps[ids[k]];
                if (nap % NAP) --nap;
                else awake.push_back(ids[k]);
            }
            count = static_cast<index_t>(awake.size());
            if (!count) continue;
            random.shuffle(awake.data(), count);
            const index_t *visit = awake.data();
            W *wt = w + t * p.width;
            const double mtt = p.m[t * p.tasks + t];
            // A block moves the other tasks once, at its end: by its rows where few change (as few as in its last epoch,
            // it is supposed), otherwise by w_t - before. Whole columns are written three times faster than rows.
            const double most_rows = static_cast<double>(p.width) / (3.0 * std::max(rows.entries(), 1.0));
            bool by_rows = coupled && static_cast<double>(std::min(moved[t], count)) < most_rows;
            if (coupled && !by_rows) std::copy(wt, wt + p.width, before.begin());
            moved[t] = 0;
            for (index_t k = 0; k < count; ++k) {
                const index_t i = visit[k];
                if (k + 12 < count) {  // visits jump about: what the next ones read is fetched ahead, in two steps
                    const index_t next = visit[k + 12];
                    fetch_ahead(&facts[next]);
                    if (p.row_of) fetch_ahead(p.row_of + next);
                    else rows.prefetch_start(next);
                }
                if (p.row_of && k + 8 < count) rows.prefetch_start(p.row_of[visit[k + 8]]);
                if (k + 4 < count) rows.prefetch(p.row_of ? p.row_of[visit[k + 4]] : visit[k + 4]);
                const index_t r = p.row_of ? p.row_of[i] : i;
                rows.load(r);
                double z = rows.dot(wt);
                if (p.bias > 0) z += p.bias * static_cast<double>(wt[features]);
                ++report.visits;
                Facts &own = facts[i];
                estimate += fenchel(p.loss, p.epsilon, z, own.y, own.c, own.beta);
                const double square = squares ? own.square : rows.square() + p.bias * p.bias;
                const Step step = coordinate_step(p.loss, p.epsilon, z, own.y, own.c, mtt * square, own.beta, lowest,
                                                  highest);
                if (step.rests) {
                    naps[i] = RESTS;
                    any_rest = true;
                    continue;
                }
                least = std::min(least, step.projected);
                most = std::max(most, step.projected);
                const double delta = step.beta - own.beta;
                if (delta != 0.0) {
                    own.beta = step.beta;
                    rows.add(mtt * delta, wt);
                    if (p.bias > 0) wt[features] += static_cast<W>(mtt * delta * p.bias);
                    ++moved[t];
                    if (by_rows) {
                        changed.push_back(r);
                        change.push_back(delta);
                        if (static_cast<double>(changed.size()) >= most_rows) {
                            by_rows = false;
                            spread(t);
                            std::copy(wt, wt + p.width, before.begin());
                        }
                    }
                }
                naps[i] = step.held ? following_nap(naps[i]) : 0;
            }
            if (any_rest)
                counts[t] = std::stable_partition(ids, ids + counts[t], [&](index_t i) { return naps[i] != RESTS; }) - ids;
            if (!coupled) continue;
            if (by_rows) {
                spread(t);
                continue;
            }
            for (index_t first = 0; first < p.width; first += COLUMNS) {  // a piece of w_t stays close for all tasks
                const index_t last = std::min(first + COLUMNS, p.width);
                for (index_t s = 0; s < p.tasks; ++s) {
                    const double mst = p.m[s * p.tasks + t];
                    if (s == t || mst == 0.0) continue;
                    W *ws = w + s * p.width;
                    const double ratio = mst / mtt;
#pragma omp simd
                    for (index_t j = first; j < last; ++j)
                        ws[j] += static_cast<W>(ratio * (static_cast<double>(wt[j]) - static_cast<double>(before[j])));
                }
            }
        }
        highest = most > 0 ? most : inf;
        lowest = least < 0 ? least : -inf;
        report.estimate = estimate;
        if (estimate <= target) break;
    }
    for (index_t i = 0; i < p.samples; ++i) beta[i] = facts[i].beta;
    report.lowest = lowest;
    report.highest = highest;
    return report;
}

template <class Rows, class W>
TASKSIEVE_INLINE void pass_range(Rows &rows, const GraphProblem &p, const W *wt, const double *beta, index_t begin,
                                 index_t end, double *scores, double *vt) {
    const index_t features = p.bias > 0 ? p.width - 1 : p.width;
    for (index_t i = begin; i < end; ++i) {
        const bool adds = beta && beta[i] != 0.0;
        if (!wt && !adds) continue;
        if (p.row_of && i + 4 < end) rows.prefetch(p.row_of[i + 4]);
        rows.load(p.row_of ? p.row_of[i] : i);
        if (wt) {
            double z = rows.dot(wt);
            if (p.bias > 0) z += p.bias * static_cast<double>(wt[features]);
            scores[i] = z;
        }
        if (adds) {
            rows.add(beta[i], vt);
            if (p.bias > 0) vt[features] += beta[i] * p.bias;
        }
    }
}

// Functions of their own for every kind of row, so that each is compiled for every processor.
#define TASKSIEVE_ROWS(ROWS, W)                                                                                       \
    TASKSIEVE_MULTIVERSION DescentReport run(const ROWS &rows, const GraphProblem &p, const Descent<W> &descent) {    \
        return descend(rows, p, descent);                                                                             \
    }                                                                                                                 \
    TASKSIEVE_MULTIVERSION void pass(ROWS &rows, const GraphProblem &p, const W *wt, const double *beta,              \
                                     index_t begin, index_t end, double *scores, double *vt) {                        \
        pass_range(rows, p, wt, beta, begin, end, scores, vt);                                                        \
    }
template <class T>
using SparseRows32 = SparseRows<T, std::int32_t>;
template <class T>
using SparseRows64 = SparseRows<T, std::int64_t>;
#define TASKSIEVE_ROWS_OF(T)             \
    TASKSIEVE_ROWS(DenseRows<T>, double) \
    TASKSIEVE_ROWS(BlockRows<T>, double) \
    TASKSIEVE_ROWS(SparseRows32<T>, double) \
    TASKSIEVE_ROWS(SparseRows64<T>, double)
TASKSIEVE_STORED_TYPES(TASKSIEVE_ROWS_OF)
TASKSIEVE_ROWS(StringRows, float)

// Strings are trained on single-precision tables, everything else on doubles.
template <class Rows>
using TableOf = std::conditional_t<std::is_same_v<Rows, StringRows>, float, double>;

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
