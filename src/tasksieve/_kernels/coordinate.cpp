#include "coordinate.hpp"

#include "anderson.hpp"
#include "lockstep.hpp"
#include "row_update.hpp"

namespace tasksieve {

void solve_row(double *c, const double *h, index_t tasks, double group, double l1, double ridge, bool positive,
               double *w, int kind) {
    solve_row_of_kind(kind, c, h, tasks, tasks, group, l1, ridge, positive, w);
}

double row_gauge(const double *m, index_t tasks, double group, double l1, bool positive, int kind) {
    double only = 0.0;
    return row_gauge_of_kind(kind, m, tasks, tasks, group, l1, positive, &only);
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

template <class T>
TASKSIEVE_INLINE const T *segment(const RowProblem &p, const T *x, index_t k, index_t t) {
    return x + p.columns[k] * p.rows + (p.shared ? 0 : p.offsets[t]);
}
index_t segment_length(const RowProblem &p, index_t t) { return p.shared ? p.rows : p.offsets[t + 1] - p.offsets[t]; }
index_t residual_start(const RowProblem &p, index_t t) { return p.shared ? t * p.rows : p.offsets[t]; }

// <x_kt, residual_t>. A squared norm of 0 stands for a column that is empty in a task, or whose coefficient there is
// known to be 0: it is not looked at.
TASKSIEVE_INLINE double product(const RowProblem &p, index_t k, index_t t, const double *state) {
    if (p.h[k * p.tasks + t] == 0.0) return 0.0;
    if (p.gram) return state[t * p.width + p.columns[k]];
    const double *residual = state + residual_start(p, t);
    const index_t n = segment_length(p, t);
    return p.narrow ? inline_dot(segment(p, p.narrow, k, t), residual, n)
                    : inline_dot(segment(p, p.x, k, t), residual, n);
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

// (w L)_t of the graph of tasks: by differences, so that nothing cancels.
double pulled(const RowProblem &p, const double *w, index_t t) {
    const double *weights = p.coupling + t * p.tasks;
    double sum = 0.0;
    for (index_t s = 0; s < p.tasks; ++s) sum += weights[s] * (w[t] - w[s]);
    return sum;
}

// <w L, w>.
double coupled(const RowProblem &p, const double *w) {
    if (!p.coupling) return 0.0;
    double sum = 0.0;
    for (index_t t = 0; t < p.tasks; ++t)
        for (index_t s = 0; s < t; ++s) sum += p.coupling[t * p.tasks + s] * (w[t] - w[s]) * (w[t] - w[s]);
    return sum;
}

constexpr int majorised_steps = 10;

// The best multiple >= 0 of a row: where the graph is strong, tasks that hang together move only together.
double best_multiple(const RowProblem &p, index_t k, const double *c, const double *row) {
    const double *h = p.h + k * p.tasks;
    double along = -row_norm_of_kind(p.kind, row, p.tasks, p.tasks, p.group[k], p.l1[k]), curvature = coupled(p, row);
    for (index_t t = 0; t < p.tasks; ++t) {
        along += c[t] * row[t];
        curvature += (h[t] + p.ridge) * row[t] * row[t];
    }
    return along > 0.0 && curvature > 0.0 ? along / curvature : 0.0;
}

// The row with a graph of tasks, from c = products + h w: in the coordinates in which its curvature is diagonal, or by
// steps on the majoriser with curvatures h_t + 2 sum_s A_ts, each followed by the best step along the row.
void solve_coupled_row(const RowProblem &p, index_t k, const double *c, const double *w, double *row) {
    const index_t tasks = p.tasks;
    std::vector<double> b(tasks), found(tasks);
    if (p.rotations) {
        const double *v = p.rotations + k * tasks * tasks;
        for (index_t i = 0; i < tasks; ++i) {
            b[i] = 0.0;
            for (index_t t = 0; t < tasks; ++t) b[i] += v[t * tasks + i] * c[t];
        }
        solve_row(b.data(), p.curvatures + k * tasks, tasks, p.group[k], 0.0, p.ridge, false, found.data());
        for (index_t t = 0; t < tasks; ++t) row[t] = dot(v + t * tasks, found.data(), tasks);
        return;
    }
    const double *h = p.h + k * tasks;
    std::vector<double> steep(tasks);
    for (index_t t = 0; t < tasks; ++t) {
        steep[t] = h[t];
        for (index_t s = 0; s < tasks; ++s) steep[t] += 2.0 * p.coupling[t * tasks + s];
    }
    std::copy_n(w, tasks, row);
    for (int step = 0; step < majorised_steps; ++step) {
        for (index_t t = 0; t < tasks; ++t) b[t] = c[t] - pulled(p, row, t) + (steep[t] - h[t]) * row[t];
        solve_row(b.data(), steep.data(), tasks, p.group[k], p.l1[k], p.ridge, p.positive, found.data(), p.kind);
        const double multiple = best_multiple(p, k, c, found.data());
        for (double &value : found) value *= multiple;
        if (std::equal(found.begin(), found.end(), row)) break;
        std::copy_n(found.data(), tasks, row);
    }
}

// A block is one column, a row of W, or several: one long row.
index_t n_blocks(const RowProblem &p) { return p.starts ? p.n_blocks : p.count; }
index_t first_of(const RowProblem &p, index_t k) { return p.starts ? p.starts[k] : k; }
index_t entries_of(const RowProblem &p, index_t k) { return (p.starts ? p.starts[k + 1] - p.starts[k] : 1) * p.tasks; }
index_t longest(const RowProblem &p) {
    index_t most = p.tasks;
    for (index_t k = 0; p.starts && k < p.n_blocks; ++k) most = std::max(most, entries_of(p, k));
    return most;
}

// The products of column `next` in some tasks, after those of `last` have been subtracted `steps` times; both may be -1,
// for none.
template <class T>
TASKSIEVE_INLINE void step_in_tasks(const RowProblem &p, const T *x, index_t begin, index_t end, index_t last,
                                    const double *steps, index_t next, double *state, double *c) {
    for (index_t t = begin; t < end; ++t) {
        double *residual = state + residual_start(p, t);
        const index_t n = segment_length(p, t);
        const bool moves = last >= 0 && steps[t] != 0.0, asks = next >= 0 && p.h[next * p.tasks + t] != 0.0;
        if (moves && asks)
            c[t] = inline_axpy_dot(-steps[t], segment(p, x, last, t), segment(p, x, next, t), n, residual);
        else if (moves)
            inline_axpy(-steps[t], segment(p, x, last, t), n, residual);
        else if (asks)
            c[t] = inline_dot(segment(p, x, next, t), residual, n);
        if (!asks && next >= 0) c[t] = 0.0;
    }
}

// Adds `room`, along the shares, to the residuals of the classes of one task, less a factor times a column of each.
template <class T>
TASKSIEVE_INLINE void free_shares(const RowProblem &p, index_t t, const double *room, double factor, const T *column,
                                  index_t n, double *residual) {
    const double *share = p.shares + p.offsets[t];
#pragma omp simd
    for (index_t i = 0; i < n; ++i) residual[i] += room[i] * share[i] - factor * column[i];
}

template <class T>
TASKSIEVE_INLINE void add_share(const RowProblem &p, index_t t, double factor, const T *column, index_t n, double *room) {
    const double *share = p.shares + p.offsets[t];
#pragma omp simd
    for (index_t i = 0; i < n; ++i) room[i] += factor * column[i] * share[i];
}

// The same where tasks are classes.
template <class T>
TASKSIEVE_INLINE void step_in_classes(const RowProblem &p, const T *x, index_t last, const double *steps, index_t next,
                                      double *state, double *c, double *room) {
    for (index_t g = 0; g < p.n_classified; ++g) {
        const index_t begin = p.classes[g], end = p.classes[g + 1], n = segment_length(p, begin);
        bool moves = false;
        for (index_t t = begin; last >= 0 && t < end; ++t) moves = moves || steps[t] != 0.0;
        if (moves) {
            std::fill_n(room, n, 0.0);
            for (index_t t = begin; t < end; ++t)
                if (steps[t] != 0.0) add_share(p, t, steps[t], segment(p, x, last, t), n, room);
        }
        for (index_t t = begin; t < end; ++t) {
            double *residual = state + p.offsets[t];
            if (moves) free_shares(p, t, room, steps[t], segment(p, x, last, t), n, residual);
            if (next >= 0) c[t] = p.h[next * p.tasks + t] != 0.0 ? inline_dot(segment(p, x, next, t), residual, n) : 0.0;
        }
    }
}

// The best multiples of the levels.
TASKSIEVE_MULTIVERSION void settle_levels(const RowProblem &p, double *state, double *c, double *b, double *room) {
    const double *inverse = p.inverse;
    for (index_t g = 0; g < p.n_classified; ++g) {
        const index_t begin = p.classes[g], count = p.classes[g + 1] - begin, n = segment_length(p, begin);
        for (index_t k = 0; k < count; ++k) {
            const index_t first = p.offsets[begin + k];
            c[k] = inline_dot(p.levels + first, state + first, n);
        }
        std::fill_n(room, n, 0.0);
        for (index_t k = 0; k < count; ++k) {
            b[k] = inline_dot(inverse + k * count, c, count);
            add_share(p, begin + k, b[k], p.levels + p.offsets[begin + k], n, room);
        }
        for (index_t k = 0; k < count; ++k) {
            const index_t first = p.offsets[begin + k];
            free_shares(p, begin + k, room, b[k], p.levels + first, n, state + first);
        }
        inverse += count * count;
    }
}

TASKSIEVE_MULTIVERSION void step_and_products(const RowProblem &p, index_t begin, index_t end, index_t last,
                                              const double *steps, index_t next, double *state, double *c,
                                              double *room) {
    if (p.classes && p.narrow)
        step_in_classes(p, p.narrow, last, steps, next, state, c, room);
    else if (p.classes)
        step_in_classes(p, p.x, last, steps, next, state, c, room);
    else if (p.narrow)
        step_in_tasks(p, p.narrow, begin, end, last, steps, next, state, c);
    else
        step_in_tasks(p, p.x, begin, end, last, steps, next, state, c);
}

// Row k of W solved exactly: its products become its change, whose entries are added to it; whether there is any.
TASKSIEVE_MULTIVERSION bool change_row(const RowProblem &p, index_t k, double *w, double *c, double *row) {
    const double *h = p.h + k * p.tasks;
    for (index_t t = 0; t < p.tasks; ++t) c[t] += h[t] * w[t];
    if (p.coupling)
        solve_coupled_row(p, k, c, w, row);
    else
        solve_row_of_kind(p.kind, c, h, p.tasks, p.tasks, p.group[k], p.l1[k], p.ridge, p.positive, row);
    bool any = false;
    for (index_t t = 0; t < p.tasks; ++t) {
        c[t] = row[t] - w[t];
        any = any || c[t] != 0.0;
        w[t] = row[t];
    }
    return any;
}

// One sweep over the blocks listed in `live`, each solved exactly in turn.
TASKSIEVE_MULTIVERSION void sweep_blocks(const RowProblem &p, const index_t *live, index_t count, double *weights,
                                         double *state, double *c, double *row, double *steps, double *room) {
    for (index_t i = 0; i < count; ++i) {
        const index_t k = live[i], first = first_of(p, k), end = p.starts ? p.starts[k + 1] : k + 1;
        const index_t entries = (end - first) * p.tasks;
        double *w = weights + first * p.tasks;
        const double *h = p.h + first * p.tasks;
        for (index_t j = first, e = 0; j < end; ++j)
            for (index_t t = 0; t < p.tasks; ++t, ++e) c[e] = product(p, j, t, state) + h[e] * w[e];
        if (p.coupling)
            solve_coupled_row(p, k, c, w, row);
        else
            solve_row_of_kind(p.kind, c, h, entries, p.tasks, p.group[k], p.l1[k], p.ridge, p.positive, row);
        for (index_t j = first, e = 0; p.classes && j < end; ++j) {
            for (index_t t = 0; t < p.tasks; ++t, ++e) {
                steps[t] = row[e] - w[e];
                w[e] = row[e];
            }
            step_and_products(p, 0, p.tasks, j, steps, -1, state, nullptr, room);
        }
        for (index_t j = first, e = 0; !p.classes && j < end; ++j)
            for (index_t t = 0; t < p.tasks; ++t, ++e) {
                const double step = row[e] - w[e];
                if (step == 0.0) continue;
                w[e] = row[e];
                if (p.gram)
                    inline_axpy(-step, gram_row(p, j, t), p.width, state + t * p.width);
                else if (p.narrow)
                    inline_axpy(-step, segment(p, p.narrow, j, t), segment_length(p, t), state + residual_start(p, t));
                else
                    inline_axpy(-step, segment(p, p.x, j, t), segment_length(p, t), state + residual_start(p, t));
            }
    }
}

TASKSIEVE_MULTIVERSION void block_products(const RowProblem &p, index_t k, const double *state, double *c) {
    const index_t first = first_of(p, k), end = first + entries_of(p, k) / p.tasks;
    for (index_t j = first, e = 0; j < end; ++j)
        for (index_t t = 0; t < p.tasks; ++t, ++e) c[e] = product(p, j, t, state);
}

class Descent {
  public:
    Descent(const RowProblem &p, double *w, double *state, int threads)
        : p_(p), w_(w), state_(state), c_(longest(p)), row_(longest(p)), steps_(p.tasks),
          state_size_(p.gram ? p.tasks * p.width : residual_start(p, p.tasks)), by_rows_(!p.gram && !p.starts),
          team_(by_rows_ && !p.classes && state_size_ >= kLong ? int(std::min<index_t>(threads, p.tasks)) : 1) {
        for (index_t g = 0; g < p.n_classified; ++g)
            room_.resize(std::max<index_t>(room_.size(), segment_length(p, p.classes[g])));
        if (p.gram) fill_state(p, w, state);
        // tasks of about as many entries in all for everyone
        for (int share = 0; share <= team_.shares(); ++share) {
            index_t t = share ? bounds_[share - 1] : 0;
            while (t < p.tasks && residual_start(p, t) * team_.shares() < state_size_ * share) ++t;
            bounds_[share] = share == team_.shares() ? p.tasks : t;
        }
    }

    // `lead` does the whole of the descent; others do their share of each of its steps.
    template <class Lead>
    void run(const Lead &lead) {
        team_.run(lead, work());
    }

    // An epoch visits the rows that are non-zero or that the last check found above their threshold; every check
    // looks at all rows.
    void epoch() {
        if (!by_rows_) {
            sweep_blocks(p_, live_.data(), live_.size(), w_, state_, c_.data(), row_.data(), steps_.data(), room_.data());
            if (p_.classes) settle_levels(p_, state_, c_.data(), row_.data(), room_.data());
            return;
        }
        const index_t count = live_.size();
        last_ = -1;
        for (index_t i = 0; i < count; ++i) {
            const index_t k = live_[i];
            step_to(k);
            last_ = change_row(p_, k, w_ + k * p_.tasks, c_.data(), row_.data()) ? k : -1;
            std::copy_n(c_.begin(), p_.tasks, steps_.begin());
        }
        if (last_ >= 0) step_to(-1);
        last_ = -1;
        if (p_.classes) settle_levels(p_, state_, c_.data(), row_.data(), room_.data());
    }

    index_t weight_size() const { return p_.count * p_.tasks; }
    index_t state_size() const { return state_size_; }

    double objective() const {
        double value = loss();
        for (index_t k = 0; k < n_blocks(p_); ++k) value += penalty(k);
        return value;
    }

    // Duality gap of the problem restricted to these columns; the ridge, and the graph, enter as extra rows of squared
    // loss.
    double gap(double *objective_out) {
        double products = 0.0, weight2 = 0.0, joined = 0.0, penalties = 0.0, ridges = 0.0, polar = 0.0;
        live_.clear();
        for (index_t k = 0; k < n_blocks(p_); ++k) {
            const double *w = w_ + first_of(p_, k) * p_.tasks;
            const index_t entries = entries_of(p_, k);
            if (by_rows_)
                step_to(k);
            else
                block_products(p_, k, state_, c_.data());
            double square = 0.0, inner = 0.0;
            for (index_t t = 0; t < entries; ++t) {
                c_[t] -= p_.ridge * w[t];
                if (p_.coupling) c_[t] -= pulled(p_, w, t);
                square += w[t] * w[t];
                inner += c_[t] * w[t];
            }
            const double own = coupled(p_, w);
            products += inner;
            weight2 += square;
            joined += own;
            ridges += 0.5 * p_.ridge * square + 0.5 * own;
            penalties += penalty(k) - 0.5 * p_.ridge * square - 0.5 * own;
            const double gauge = row_gauge_of_kind(p_.kind, c_.data(), entries, p_.tasks, p_.group[k], p_.l1[k],
                                                   p_.positive, row_.data());
            polar = std::max(polar, gauge);
            if (square > 0.0 || gauge > 1.0) live_.push_back(k);
        }
        const double value = loss(), residual2 = 2.0 * value + p_.ridge * weight2 + joined;
        if (objective_out) *objective_out = value + penalties + ridges;
        double scale = residual2 > 0.0 ? (residual2 + products) / residual2 : 1.0;
        if (polar > 0.0) scale = std::min(scale, 1.0 / polar);
        // Certificates do not lengthen a dual point beside a ridge; the plain family has stopped on this gap since 0.1.
        if (p_.ridge > 0.0 && (p_.starts || p_.kind != ROW_SUM)) scale = std::min(scale, 1.0);
        scale = std::max(scale, 0.0);
        return 0.5 * (1.0 - scale) * (1.0 - scale) * residual2 + penalties - scale * products;
    }

    double *weights() { return w_; }
    double *state() { return state_; }

  private:
    static constexpr index_t kLong = 4096;  // entries of a column: fewer take less time than waiting for each other

    auto work() {
        return [this](int share) {
            step_and_products(p_, bounds_[share], bounds_[share + 1], last_, steps_.data(), next_, state_, c_.data(),
                              room_.data());
        };
    }

    // What the last row has left to do, and the products of another one, into c_.
    void step_to(index_t next) {
        next_ = next;
        team_.step(work());
    }

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
        const double *w = w_ + first_of(p_, k) * p_.tasks;
        const index_t entries = entries_of(p_, k);
        if (p_.kind != ROW_SUM) {
            const double norm = row_norm_of_kind(p_.kind, w, entries, p_.tasks, p_.group[k], p_.l1[k]);
            return norm + 0.5 * p_.ridge * dot(w, w, entries) + 0.5 * coupled(p_, w);
        }
        double square = 0.0, absolute = 0.0;
        for (index_t t = 0; t < entries; ++t) {
            square += w[t] * w[t];
            absolute += std::fabs(w[t]);
        }
        return p_.group[k] * std::sqrt(square) + p_.l1[k] * absolute + 0.5 * p_.ridge * square + 0.5 * coupled(p_, w);
    }

    const RowProblem &p_;
    double *w_, *state_;
    std::vector<double> c_, row_, steps_, room_;
    std::vector<index_t> live_;
    index_t state_size_, last_ = -1, next_ = -1;
    bool by_rows_;
    Lockstep team_;
    index_t bounds_[Lockstep::kMost + 1] = {};  // the tasks of each share
};

}  // namespace

RowReport coordinate_descent(const RowProblem &problem, double *w, double *state, index_t max_epochs, double tol,
                             int threads) {
    Descent descent(problem, w, state, threads);
    RowReport report;
    descent.run([&] {
        Anderson<Descent> anderson;
        report.gap = descent.gap(&report.objective);
        if (report.gap <= tol) return;
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
    });
    return report;
}

}  // namespace tasksieve
