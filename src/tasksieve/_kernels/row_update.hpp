// One row of W solved exactly, its norm, and the gauge of a row of correlations: inlined into the loops over rows.
//
// What the two strengths of a row mean is a matter of its kind:
//   ROW_SUM      group ||w||_2 + l1 ||w||_1
//   ROW_LARGEST  group max_t |w_t|
//   ROW_SPLIT    min over w = p + q of group ||p||_2 + l1 ||q||_1
//   ROW_STACK    group ||w||_2 + l1 sum_j ||w_j||_2 over the rows w_j that a block is stacked of; equal curvatures only
// Blocks of several rows (ROW_SUM, ROW_STACK) are one long row.
#pragma once
#include "common.hpp"

namespace tasksieve {

enum RowKind { ROW_SUM = 0, ROW_LARGEST = 1, ROW_SPLIT = 2, ROW_STACK = 3, ROW_KINDS = 4 };

// Root nu of sum_t (c_t / (h_t nu + lam))^2 = 1 by Newton on its concave increasing form: from the left end it
// climbs monotonically and cannot overshoot (mathematics 2.7).
TASKSIEVE_INLINE double secular_root(const double *c, const double *h, index_t tasks, double lam, double ridge, double norm) {
    double largest = 0.0, smallest = INFINITY;
#pragma omp simd reduction(max : largest) reduction(min : smallest)
    for (index_t t = 0; t < tasks; ++t) {
        const double curvature = h[t] + ridge;
        const bool counts = c[t] != 0.0;  // what has no product does not matter
        const double high = counts ? curvature : 0.0, low = counts ? curvature : INFINITY;
        largest = high > largest ? high : largest;
        smallest = low < smallest ? low : smallest;
    }
    double nu = (norm - lam) / largest;
    if (smallest == largest) return nu;
    for (int step = 0; step < 30; ++step) {
        double sum = 0.0, slope = 0.0;
#pragma omp simd reduction(+ : sum, slope)
        for (index_t t = 0; t < tasks; ++t) {
            const double curvature = h[t] + ridge, inverse = 1.0 / (curvature * nu + lam), ratio = c[t] * inverse;
            sum += ratio * ratio;
            slope += ratio * ratio * curvature * inverse;
        }
        // psi = sum^(-1/2) - 1, psi' = sum^(-3/2) * slope
        const double delta = -(1.0 / std::sqrt(sum) - 1.0) * sum * std::sqrt(sum) / slope;
        nu += delta;
        if (!(std::fabs(delta) > 1e-14 * nu)) break;
    }
    return nu;
}

TASKSIEVE_INLINE void solve_row_inline(double *c, const double *h, index_t tasks, double group, double l1, double ridge, bool positive,
               double *w) {
    for (index_t t = 0; t < tasks; ++t) {
        double v = c[t];
        if (positive)
            v = std::max(v - l1, 0.0);
        else if (l1 > 0.0)
            v = v > l1 ? v - l1 : (v < -l1 ? v + l1 : 0.0);
        if (h[t] + ridge <= 0.0) v = 0.0;  // an empty column of this task
        c[t] = v;
    }
    // By itself: GCC compiles a loop over two arrays twice, for arrays that are near each other in memory and others,
    // and fuses products into the sum in one of the two only. The last bit would hang on the allocator.
    double squares = 0.0;
    for (index_t t = 0; t < tasks; ++t) squares += c[t] * c[t];
    const double norm = std::sqrt(squares);
    if (norm <= group) {
        std::fill(w, w + tasks, 0.0);
        return;
    }
    if (tasks == 1) {
        w[0] = c[0] * (1.0 - group / norm) / (h[0] + ridge);
        return;
    }
    const double shift = group > 0.0 ? group / secular_root(c, h, tasks, group, ridge, norm) : 0.0;
    for (index_t t = 0; t < tasks; ++t) w[t] = c[t] == 0.0 ? 0.0 : c[t] / (h[t] + ridge + shift);
}

// Negative entries where only W >= 0 is allowed, and those of empty columns, do not count.
TASKSIEVE_INLINE void clear_idle(double *c, const double *h, index_t tasks, double ridge, bool positive) {
    for (index_t t = 0; t < tasks; ++t)
        if (h[t] + ridge <= 0.0 || (positive && c[t] < 0.0)) c[t] = 0.0;
}

// Entries are cut at the height nu where what is cut off, sum_t (|c_t| - h_t nu)_+, is the strength. That sum is convex
// and piecewise linear in nu: Newton's method from the left ends at its root, each step leaving out what has come below.
TASKSIEVE_INLINE void solve_largest_row(double *c, const double *h, index_t tasks, double strength, double ridge, bool positive,
                     double *w) {
    clear_idle(c, h, tasks, ridge, positive);
    double nu = -1.0;
    for (index_t step = 0; step <= tasks; ++step) {
        double sum = 0.0, curvatures = 0.0;
        for (index_t t = 0; t < tasks; ++t) {
            const double size = std::fabs(c[t]), curvature = h[t] + ridge;
            const bool counts = size > 0.0 && size > curvature * nu;
            sum += counts ? size : 0.0;
            curvatures += counts ? curvature : 0.0;
        }
        if (step == 0 && sum <= strength) {
            std::fill(w, w + tasks, 0.0);
            return;
        }
        const double next = (sum - strength) / curvatures;
        if (!(next > nu)) break;
        nu = next;
    }
    for (index_t t = 0; t < tasks; ++t) {
        const double size = std::fabs(c[t]);
        w[t] = size > 0.0 ? std::copysign(std::min(size / (h[t] + ridge), nu), c[t]) : 0.0;
    }
}

// The slope s of the norm at the solution has entries clip(c_t / (1 + mu h_t), -l1, l1), and length group unless mu = 0;
// the part p of w is mu s. Caps are found from none on: each root mu lies below the last one, where more entries are
// capped, and with given caps the equation is that of `secular_root`.
TASKSIEVE_INLINE void solve_split_row(double *c, const double *h, index_t tasks, double group, double l1, double ridge, bool positive,
                   double *w) {
    clear_idle(c, h, tasks, ridge, positive);
    double capped_squares = 0.0, squares = 0.0, steepest = 0.0;
    for (index_t t = 0; t < tasks; ++t) {
        const double size = std::fabs(c[t]), cut = std::min(size, l1);
        capped_squares += cut * cut;
        squares += size * size;
        steepest = size > 0.0 ? std::max(steepest, h[t] + ridge) : steepest;
    }
    double mu = 0.0;
    if (capped_squares > group * group) {
        mu = (std::sqrt(squares) / group - 1.0) / steepest;  // no more than the root without caps
        index_t caps = -1;
        for (index_t stage = 0; stage <= tasks; ++stage) {
            index_t count = 0;
            if (stage > 0)
                for (index_t t = 0; t < tasks; ++t) count += std::fabs(c[t]) > l1 * (1.0 + mu * (h[t] + ridge));
            if (count == caps) break;
            caps = count;
            const double left = group * group - double(caps) * l1 * l1;
            if (!(left > 0.0)) break;
            const double limit = stage > 0 ? mu : -1.0;  // caps are those of this level
            for (int step = 0; step < 50; ++step) {
                double sum = 0.0, slope = 0.0;
                for (index_t t = 0; t < tasks; ++t) {
                    const double curvature = h[t] + ridge;
                    if (stage > 0 && std::fabs(c[t]) > l1 * (1.0 + limit * curvature)) continue;
                    const double inverse = 1.0 / (1.0 + mu * curvature), ratio = c[t] * inverse;
                    sum += ratio * ratio;
                    slope += ratio * ratio * curvature * inverse;
                }
                if (!(slope > 0.0)) break;
                const double root = std::sqrt(sum);
                const double delta = (root / std::sqrt(left) - 1.0) * sum / slope;
                mu = std::max(mu + delta, 0.0);
                if (!(std::fabs(delta) > 1e-14 * mu)) break;
            }
        }
    }
    for (index_t t = 0; t < tasks; ++t) {
        const double size = std::fabs(c[t]), curvature = h[t] + ridge, bend = 1.0 + mu * curvature;
        if (size == 0.0)
            w[t] = 0.0;
        else if (size > l1 * bend)
            w[t] = std::copysign((size - l1) / curvature, c[t]);
        else
            w[t] = c[t] * (mu / bend);
    }
}

// Rows lose l1 of their length, then the block loses `group` of its own. Curvatures are 0 or one number.
TASKSIEVE_INLINE void solve_stack(double *c, const double *h, index_t entries, index_t tasks, double group, double l1, double ridge,
                 bool positive, double *w) {
    clear_idle(c, h, entries, ridge, positive);
    double squares = 0.0, curvature = 0.0;
    for (index_t e = 0; e < entries; e += tasks) {
        double length = 0.0;
        for (index_t t = 0; t < tasks; ++t) {
            length += c[e + t] * c[e + t];
            curvature = std::max(curvature, h[e + t] + ridge);
        }
        length = std::sqrt(length);
        const double left = std::max(length - l1, 0.0), factor = length > 0.0 ? left / length : 0.0;
        for (index_t t = 0; t < tasks; ++t) c[e + t] *= factor;
        squares += left * left;
    }
    const double norm = std::sqrt(squares), factor = norm > group ? (1.0 - group / norm) / curvature : 0.0;
    for (index_t e = 0; e < entries; ++e) w[e] = factor * c[e];
}

// `entries` is `tasks`, or a multiple of it where a block has several rows.
TASKSIEVE_INLINE void solve_row_of_kind(int kind, double *c, const double *h, index_t entries, index_t tasks, double group, double l1,
                       double ridge, bool positive, double *w) {
    if (kind == ROW_STACK)
        solve_stack(c, h, entries, tasks, group, l1, ridge, positive, w);
    else if (kind == ROW_LARGEST)
        solve_largest_row(c, h, entries, group, ridge, positive, w);
    else if (kind == ROW_SPLIT)
        solve_split_row(c, h, entries, group, l1, ridge, positive, w);
    else
        solve_row_inline(c, h, entries, group, l1, ridge, positive, w);
}

// Where the parts of a row end: p is the row cut at this height (ROW_SPLIT). It is l1 tau with ||min(|w|/tau, l1)|| =
// group, or 0 where p is; found from above, each step cutting what was too high for the last.
TASKSIEVE_INLINE double split_height(const double *w, index_t tasks, double group, double l1) {
    index_t live = 0;
    for (index_t t = 0; t < tasks; ++t) live += w[t] != 0.0;
    if (double(live) * l1 * l1 <= group * group) return 0.0;
    double height = INFINITY;
    for (index_t step = 0; step <= tasks; ++step) {
        double squares = 0.0, left = group * group;
        for (index_t t = 0; t < tasks; ++t) {
            const double size = std::fabs(w[t]);
            if (size > height)
                left -= l1 * l1;
            else
                squares += size * size;
        }
        const double next = left > 0.0 ? l1 * std::sqrt(squares / left) : 0.0;
        if (!(next < height)) break;
        height = next;
    }
    return height;
}

TASKSIEVE_INLINE double row_length(const double *w, index_t tasks, bool positive = false) {
    double squares = 0.0;
    for (index_t t = 0; t < tasks; ++t) squares += positive && w[t] < 0.0 ? 0.0 : w[t] * w[t];
    return std::sqrt(squares);
}

TASKSIEVE_INLINE double row_norm_of_kind(int kind, const double *w, index_t entries, index_t tasks, double group, double l1) {
    if (kind == ROW_STACK) {
        double sum = 0.0;
        for (index_t e = 0; e < entries; e += tasks) sum += row_length(w + e, tasks);
        return group * row_length(w, entries) + l1 * sum;
    }
    const double height = kind == ROW_SPLIT ? split_height(w, entries, group, l1) : INFINITY;
    double squares = 0.0, rest = 0.0, largest = 0.0;
    for (index_t t = 0; t < entries; ++t) {
        const double size = std::fabs(w[t]), cut = std::min(size, height);
        squares += cut * cut;
        rest += kind == ROW_SPLIT ? size - cut : size;
        largest = std::max(largest, size);
    }
    return kind == ROW_LARGEST ? group * largest : group * std::sqrt(squares) + l1 * rest;
}

// The smallest v with m / v in the dual ball of group ||.||_2 + l1 ||.||_1.
TASKSIEVE_INLINE double row_gauge_inline(const double *m, index_t tasks, double group, double l1, bool positive) {
    double squares = 0.0, largest = 0.0;
    for (index_t t = 0; t < tasks; ++t) {
        const double v = positive ? std::max(m[t], 0.0) : std::fabs(m[t]);
        squares += v * v;
        largest = std::max(largest, v);
    }
    if (squares == 0.0) return 0.0;
    if (l1 == 0.0) return group > 0.0 ? std::sqrt(squares) / group : INFINITY;
    if (group == 0.0) return largest / l1;
    // ||soft(m, v l1)|| - v group is convex and decreasing in v: Newton from the left end never overshoots.
    double v = std::max(largest / (l1 + group), std::sqrt(squares) / (l1 * std::sqrt(double(tasks)) + group));
    for (int step = 0; step < 60; ++step) {
        double sum = 0.0, weight = 0.0;
        for (index_t t = 0; t < tasks; ++t) {
            const double rest = (positive ? std::max(m[t], 0.0) : std::fabs(m[t])) - v * l1;
            if (rest > 0.0) {
                sum += rest * rest;
                weight += rest;
            }
        }
        const double norm = std::sqrt(sum);
        const double slope = norm > 0.0 ? -l1 * weight / norm - group : -group;
        const double delta = -(norm - v * group) / slope;
        v += delta;
        if (!(delta > 1e-15 * v)) break;
    }
    return v;
}

// `lengths` is room for one number a row of the block.
TASKSIEVE_INLINE double row_gauge_of_kind(int kind, const double *m, index_t entries, index_t tasks, double group, double l1,
                         bool positive, double *lengths) {
    if (kind == ROW_SUM) return row_gauge_inline(m, entries, group, l1, positive);
    if (kind == ROW_STACK) {
        for (index_t e = 0; e < entries; e += tasks) lengths[e / tasks] = row_length(m + e, tasks, positive);
        return row_gauge_inline(lengths, entries / tasks, group, l1, false);
    }
    double squares = 0.0, largest = 0.0, sum = 0.0;
    for (index_t t = 0; t < entries; ++t) {
        const double size = positive ? std::max(m[t], 0.0) : std::fabs(m[t]);
        squares += size * size;
        sum += size;
        largest = std::max(largest, size);
    }
    if (sum == 0.0) return 0.0;
    return kind == ROW_LARGEST ? sum / group : std::max(std::sqrt(squares) / group, largest / l1);
}

}  // namespace tasksieve
