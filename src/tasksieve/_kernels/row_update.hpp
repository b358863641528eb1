// One row of W solved exactly, and the gauge of a row: inlined into the loops over rows.
#pragma once
#include "common.hpp"

namespace tasksieve {

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
    double squares = 0.0;
    for (index_t t = 0; t < tasks; ++t) {
        double v = c[t];
        if (positive)
            v = std::max(v - l1, 0.0);
        else if (l1 > 0.0)
            v = v > l1 ? v - l1 : (v < -l1 ? v + l1 : 0.0);
        if (h[t] + ridge <= 0.0) v = 0.0;  // an empty column of this task
        c[t] = v;
        squares += v * v;
    }
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

}  // namespace tasksieve
