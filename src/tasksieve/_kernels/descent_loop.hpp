// How dual coordinate descent visits rows of any kind: what descent_*.cpp compile.
#pragma once
#include <limits>

#include "descent.hpp"
#include "graph_losses.hpp"

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
            // Active samples are found first, in the order of memory: no other one is fetched in vain, and all visits are
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

}  // namespace

#define TASKSIEVE_DEFINE_ROWS(ROWS)                                                                                  \
    TASKSIEVE_MULTIVERSION DescentReport run(const ROWS &rows, const GraphProblem &p,                                \
                                             const Descent<TableOf<ROWS>> &descent) {                                \
        return descend(rows, p, descent);                                                                            \
    }                                                                                                                \
    TASKSIEVE_MULTIVERSION void pass(ROWS &rows, const GraphProblem &p, const TableOf<ROWS> *wt, const double *beta, \
                                     index_t begin, index_t end, double *scores, double *vt) {                       \
        pass_range(rows, p, wt, beta, begin, end, scores, vt);                                                       \
    }

}  // namespace tasksieve
