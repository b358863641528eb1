#include "coordinate.hpp"

#include "vectors.hpp"

namespace tasksieve {

namespace {

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

}  // namespace

void solve_row(double *c, const double *h, index_t tasks, double group, double l1, double ridge, bool positive,
               double *w) {
    solve_row_inline(c, h, tasks, group, l1, ridge, positive, w);
}

double row_gauge(const double *m, index_t tasks, double group, double l1, bool positive) {
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

TASKSIEVE_MULTIVERSION void row_gauges(const double *m, const double *errors, index_t count, index_t tasks,
                                       const double *group, const double *l1, bool positive, double *out) {
    std::vector<double> row(tasks);
    for (index_t j = 0; j < count; ++j) {
        if (!(group[j] > 0.0 || l1[j] > 0.0)) {
            out[j] = 0.0;
            continue;
        }
        double squares = 0.0;
#pragma omp simd reduction(+ : squares)
        for (index_t t = 0; t < tasks; ++t) {
            const double value = m[j * tasks + t], error = errors ? errors[j * tasks + t] : 0.0;
            const double size = (positive ? value : std::fabs(value)) + error;
            row[t] = positive && size < 0.0 ? 0.0 : size;
            squares += row[t] * row[t];
        }
        out[j] = l1[j] > 0.0 ? row_gauge(row.data(), tasks, group[j], l1[j], false) : std::sqrt(squares) / group[j];
    }
}

TASKSIEVE_MULTIVERSION void row_norms(const double *rows, index_t count, index_t tasks, double *out) {
    for (index_t j = 0; j < count; ++j) out[j] = std::sqrt(inline_dot(rows + j * tasks, rows + j * tasks, tasks));
}

void pick_rows(const index_t *known, index_t n_known, const double *rows, const index_t *features, index_t count,
               index_t tasks, double *out) {
    index_t at = 0;
    for (index_t k = 0; k < count; ++k) {
        while (at < n_known && known[at] < features[k]) ++at;
        if (at < n_known && known[at] == features[k])
            std::copy_n(rows + at * tasks, tasks, out + k * tasks);
        else
            std::fill_n(out + k * tasks, tasks, 0.0);
    }
}

namespace {

const double *segment(const RowProblem &p, index_t k, index_t t) {
    return p.x + p.columns[k] * p.rows + (p.shared ? 0 : p.offsets[t]);
}
index_t length(const RowProblem &p, index_t t) { return p.shared ? p.rows : p.offsets[t + 1] - p.offsets[t]; }
index_t residual_start(const RowProblem &p, index_t t) { return p.shared ? t * p.rows : p.offsets[t]; }

// <x_kt, residual_t>. A squared norm of 0 stands for a column that is empty in a task, or whose coefficient there is
// known to be 0: it is not looked at.
TASKSIEVE_INLINE double product(const RowProblem &p, index_t k, index_t t, const double *state) {
    if (p.h[k * p.tasks + t] == 0.0) return 0.0;
    return p.gram ? state[t * p.width + p.columns[k]] : inline_dot(segment(p, k, t), state + residual_start(p, t), length(p, t));
}

// <x_j, x_k>_t for all columns j.
const double *gram_row(const RowProblem &p, index_t k, index_t t) {
    return p.gram + ((p.shared ? 0 : t * p.stride) + p.columns[k]) * p.stride;
}

// The products of the residual, from those of y.
void fill_state(const RowProblem &p, const double *w, double *state) {
    std::copy(p.y_products, p.y_products + p.tasks * p.width, state);
    for (index_t k = 0; k < p.count; ++k)
        for (index_t t = 0; t < p.tasks; ++t)
            if (w[k * p.tasks + t] != 0.0)
                axpy(-w[k * p.tasks + t], gram_row(p, k, t), p.width, state + t * p.width);
}

// One sweep over the rows listed in `live`, each solved exactly in turn.
TASKSIEVE_MULTIVERSION void sweep(const RowProblem &p, const index_t *live, index_t count, double *weights,
                                  double *state, double *c, double *row) {
    for (index_t i = 0; i < count; ++i) {
        const index_t k = live[i];
        double *w = weights + k * p.tasks;
        const double *h = p.h + k * p.tasks;
        for (index_t t = 0; t < p.tasks; ++t) c[t] = product(p, k, t, state) + h[t] * w[t];
        solve_row_inline(c, h, p.tasks, p.group[k], p.l1[k], p.ridge, p.positive, row);
        for (index_t t = 0; t < p.tasks; ++t) {
            const double step = row[t] - w[t];
            if (step == 0.0) continue;
            w[t] = row[t];
            if (p.gram)
                inline_axpy(-step, gram_row(p, k, t), p.width, state + t * p.width);
            else
                inline_axpy(-step, segment(p, k, t), length(p, t), state + residual_start(p, t));
        }
    }
}

TASKSIEVE_MULTIVERSION void row_products(const RowProblem &p, index_t k, const double *state, double *c) {
    for (index_t t = 0; t < p.tasks; ++t) c[t] = product(p, k, t, state);
}

class Descent {
  public:
    Descent(const RowProblem &p, double *w, double *state)
        : p_(p), w_(w), state_(state), c_(p.tasks), row_(p.tasks),
          state_size_(p.gram ? p.tasks * p.width : residual_start(p, p.tasks)) {
        if (p.gram) fill_state(p, w, state);
    }

    // An epoch visits the rows that are non-zero or that the last check found above their threshold; every check
    // looks at all rows.
    void epoch() { sweep(p_, live_.data(), live_.size(), w_, state_, c_.data(), row_.data()); }

    index_t weight_size() const { return p_.count * p_.tasks; }
    index_t state_size() const { return state_size_; }

    double objective() const {
        double value = loss();
        for (index_t k = 0; k < p_.count; ++k) value += penalty(k);
        return value;
    }

    // Duality gap of the problem restricted to these columns; the ridge enters as extra rows of squared loss.
    double gap(double *objective_out) {
        double products = 0.0, weight2 = 0.0, penalties = 0.0, ridges = 0.0, polar = 0.0;
        live_.clear();
        for (index_t k = 0; k < p_.count; ++k) {
            const double *w = w_ + k * p_.tasks;
            row_products(p_, k, state_, c_.data());
            double square = 0.0, inner = 0.0;
            for (index_t t = 0; t < p_.tasks; ++t) {
                c_[t] -= p_.ridge * w[t];
                square += w[t] * w[t];
                inner += c_[t] * w[t];
            }
            products += inner;
            weight2 += square;
            ridges += 0.5 * p_.ridge * square;
            penalties += penalty(k) - 0.5 * p_.ridge * square;
            const double gauge = row_gauge(c_.data(), p_.tasks, p_.group[k], p_.l1[k], p_.positive);
            polar = std::max(polar, gauge);
            if (square > 0.0 || gauge > 1.0) live_.push_back(k);
        }
        const double value = loss(), residual2 = 2.0 * value + p_.ridge * weight2;
        if (objective_out) *objective_out = value + penalties + ridges;
        double scale = residual2 > 0.0 ? (residual2 + products) / residual2 : 1.0;
        if (polar > 0.0) scale = std::min(scale, 1.0 / polar);
        scale = std::max(scale, 0.0);
        return 0.5 * (1.0 - scale) * (1.0 - scale) * residual2 + penalties - scale * products;
    }

    double *weights() { return w_; }
    double *state() { return state_; }

  private:
    double loss() const {
        if (!p_.gram) return 0.5 * dot(state_, state_, state_size_);
        // ||y - XW||^2 = ||y||^2 - <W, X'y + X'r>
        double inner = 0.0;
        for (index_t k = 0; k < p_.count; ++k)
            for (index_t t = 0; t < p_.tasks; ++t) {
                const index_t at = t * p_.width + p_.columns[k];
                inner += w_[k * p_.tasks + t] * (p_.y_products[at] + state_[at]);
            }
        return std::max(0.5 * (p_.y_squared - inner), 0.0);
    }

    double penalty(index_t k) const {
        const double *w = w_ + k * p_.tasks;
        double square = 0.0, absolute = 0.0;
        for (index_t t = 0; t < p_.tasks; ++t) {
            square += w[t] * w[t];
            absolute += std::fabs(w[t]);
        }
        return p_.group[k] * std::sqrt(square) + p_.l1[k] * absolute + 0.5 * p_.ridge * square;
    }

    const RowProblem &p_;
    double *w_, *state_;
    std::vector<double> c_, row_;
    std::vector<index_t> live_;
    index_t state_size_;
};

// Solves the small symmetric system of Anderson's extrapolation by elimination with pivoting; false if singular.
bool solve_small(std::vector<double> a, index_t n, std::vector<double> &x) {
    x.assign(n, 1.0);
    for (index_t i = 0; i < n; ++i) {
        index_t pivot = i;
        for (index_t j = i + 1; j < n; ++j)
            if (std::fabs(a[j * n + i]) > std::fabs(a[pivot * n + i])) pivot = j;
        if (!(std::fabs(a[pivot * n + i]) > 0.0)) return false;
        if (pivot != i) {
            for (index_t c = 0; c < n; ++c) std::swap(a[i * n + c], a[pivot * n + c]);
            std::swap(x[i], x[pivot]);
        }
        for (index_t j = i + 1; j < n; ++j) {
            const double factor = a[j * n + i] / a[i * n + i];
            for (index_t c = i; c < n; ++c) a[j * n + c] -= factor * a[i * n + c];
            x[j] -= factor * x[i];
        }
    }
    for (index_t i = n - 1; i >= 0; --i) {
        for (index_t c = i + 1; c < n; ++c) x[i] -= a[i * n + c] * x[c];
        x[i] /= a[i * n + i];
    }
    return true;
}

// Anderson acceleration (the last `depth` steps): the residual is affine in W, so it is extrapolated along with W
// and no product with X is needed. A candidate is kept only if it lowers the objective.
class Anderson {
  public:
    static constexpr index_t depth = 5;

    void push(Descent &d) {
        weights_.emplace_back(d.weights(), d.weights() + d.weight_size());
        states_.emplace_back(d.state(), d.state() + d.state_size());
    }
    bool ready() const { return weights_.size() == depth + 1; }

    void extrapolate(Descent &d, bool positive) {
        const index_t n = d.weight_size();
        std::vector<double> gram(depth * depth), x, difference(depth * n);
        for (index_t i = 0; i < depth; ++i)
            for (index_t e = 0; e < n; ++e) difference[i * n + e] = weights_[i + 1][e] - weights_[i][e];
        double trace = 0.0;
        for (index_t i = 0; i < depth; ++i)
            for (index_t j = 0; j <= i; ++j) {
                gram[i * depth + j] = gram[j * depth + i] = dot(&difference[i * n], &difference[j * n], n);
                if (i == j) trace += gram[i * depth + i];
            }
        for (index_t i = 0; i < depth; ++i) gram[i * depth + i] += 1e-10 * trace;
        double total = 0.0;
        if (trace > 0.0 && solve_small(gram, depth, x))
            for (double v : x) total += v;
        if (std::isfinite(total) && total != 0.0) {
            const double before = d.objective();
            std::vector<double> w_old(d.weights(), d.weights() + n);
            std::vector<double> s_old(d.state(), d.state() + d.state_size());
            std::fill(d.weights(), d.weights() + n, 0.0);
            std::fill(d.state(), d.state() + d.state_size(), 0.0);
            for (index_t i = 0; i < depth; ++i) {
                axpy(x[i] / total, weights_[i + 1].data(), n, d.weights());
                axpy(x[i] / total, states_[i + 1].data(), d.state_size(), d.state());
            }
            bool keep = true;
            for (index_t e = 0; e < n && keep; ++e) keep = std::isfinite(d.weights()[e]);
            for (index_t e = 0; positive && e < n && keep; ++e) keep = d.weights()[e] >= 0.0;
            if (!keep || !(d.objective() < before)) {
                std::copy(w_old.begin(), w_old.end(), d.weights());
                std::copy(s_old.begin(), s_old.end(), d.state());
            }
        }
        weights_.clear();
        states_.clear();
    }

  private:
    std::vector<std::vector<double>> weights_, states_;
};

}  // namespace

RowReport coordinate_descent(const RowProblem &problem, double *w, double *state, index_t max_epochs, double tol) {
    Descent descent(problem, w, state);
    Anderson anderson;
    RowReport report;
    report.gap = descent.gap(&report.objective);
    if (report.gap <= tol) return report;
    while (report.epochs < max_epochs) {
        descent.epoch();
        ++report.epochs;
        anderson.push(descent);
        const bool full = anderson.ready();
        if (full) anderson.extrapolate(descent, problem.positive);
        if (full || report.epochs == max_epochs || report.epochs % (problem.gram ? 2 : 3) == 0) {
            report.gap = descent.gap(&report.objective);
            if (report.gap <= tol) break;
        }
    }
    return report;
}

}  // namespace tasksieve
