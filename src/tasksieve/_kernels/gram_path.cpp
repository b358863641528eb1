#include "gram_path.hpp"

#include <chrono>
#include <new>

#include "anderson.hpp"
#include "blas.hpp"
#include "parallel.hpp"
#include "row_update.hpp"

namespace tasksieve {

namespace {

constexpr index_t block_rows = panel_rows;  // rows of W that are solved before all correlations follow
constexpr double unit = 0x1p-53, lost_squares = 0x1p-520;
constexpr index_t most_rounds = 40;  // of an active set at one value
constexpr index_t many_epochs = 10;  // at two values running: an active set is less work
constexpr double near = 0.995;       // of its threshold: such a feature is in play

double gamma(double operations) { return 1.01 * unit * operations; }

// h_t[c] -= sum_b delta[b, t] G[rows_b, c] for `width` tasks at once, along the panels of one block of rows.
template <int width>
TASKSIEVE_INLINE void subtract(const double *panel, const index_t *rows, const double *delta, index_t stride,
                               index_t count, double *h, index_t h_stride, index_t panels) {
    constexpr int lanes = panel_columns;
    for (index_t c = 0; c < panels; ++c, panel += panel_rows * lanes, h += lanes) {
        double sum[width][lanes];
TASKSIEVE_UNROLL(8)
        for (int t = 0; t < width; ++t)
#pragma omp simd
            for (int i = 0; i < lanes; ++i) sum[t][i] = h[t * h_stride + i];
        for (index_t b = 0; b < count; ++b) {
            const double *row = panel + rows[b] * lanes;
TASKSIEVE_UNROLL(8)
            for (int t = 0; t < width; ++t) {
                const double d = delta[b * stride + t];
#pragma omp simd
                for (int i = 0; i < lanes; ++i) sum[t][i] -= d * row[i];
            }
        }
TASKSIEVE_UNROLL(8)
        for (int t = 0; t < width; ++t)
#pragma omp simd
            for (int i = 0; i < lanes; ++i) h[t * h_stride + i] = sum[t][i];
    }
}

// One task: two sums side by side, since one alone would wait for itself.
TASKSIEVE_INLINE void subtract_one(const double *panel, const index_t *rows, const double *delta, index_t stride,
                                   index_t count, double *h, index_t panels) {
    constexpr int lanes = panel_columns;
    for (index_t c = 0; c < panels; ++c, panel += panel_rows * lanes, h += lanes) {
        double sum[2][lanes] = {};
        index_t b = 0;
        for (; b + 2 <= count; b += 2) {
            const double *one = panel + rows[b] * lanes, *two = panel + rows[b + 1] * lanes;
            const double d = delta[b * stride], e = delta[(b + 1) * stride];
#pragma omp simd
            for (int i = 0; i < lanes; ++i) sum[0][i] += d * one[i];
#pragma omp simd
            for (int i = 0; i < lanes; ++i) sum[1][i] += e * two[i];
        }
        if (b < count) {
            const double *one = panel + rows[b] * lanes, d = delta[b * stride];
#pragma omp simd
            for (int i = 0; i < lanes; ++i) sum[0][i] += d * one[i];
        }
#pragma omp simd
        for (int i = 0; i < lanes; ++i) h[i] -= sum[0][i] + sum[1][i];
    }
}

// The same for all tasks, on one matrix.
TASKSIEVE_MULTIVERSION void subtract_shared(const double *panel, const index_t *rows, const double *delta,
                                            index_t count, index_t tasks, double *h, index_t h_stride,
                                            index_t panels) {
    for (index_t t = 0; t < tasks;) {
        const index_t left = tasks - t, width = left > 6 && left < 10 ? (left + 1) / 2 : std::min<index_t>(left, 5);
        double *own = h + t * h_stride;
        switch (width) {
            case 5: subtract<5>(panel, rows, delta + t, tasks, count, own, h_stride, panels); break;
            case 4: subtract<4>(panel, rows, delta + t, tasks, count, own, h_stride, panels); break;
            case 3: subtract<3>(panel, rows, delta + t, tasks, count, own, h_stride, panels); break;
            case 2: subtract<2>(panel, rows, delta + t, tasks, count, own, h_stride, panels); break;
            default: subtract_one(panel, rows, delta + t, tasks, count, own, panels); break;
        }
        t += width;
    }
}

TASKSIEVE_MULTIVERSION void subtract_own(const double *panel, const index_t *rows, const double *delta, index_t count,
                                         index_t tasks, double *h, index_t panels) {
    subtract_one(panel, rows, delta, tasks, count, h, panels);
}

// One row of W; columns of all tasks have the same length where there is one matrix.
TASKSIEVE_INLINE void solve_one(double *c, const double *h, index_t tasks, bool same, double group, double l1,
                                double ridge, bool positive, double *w) {
    if (!same || l1 > 0.0 || positive || tasks == 1) {
        solve_row_inline(c, h, tasks, group, l1, ridge, positive, w);
        return;
    }
    double squares = 0.0;
    for (index_t t = 0; t < tasks; ++t) squares += c[t] * c[t];
    const double norm = std::sqrt(squares), curvature = h[0] + ridge;
    const double factor = norm <= group || curvature <= 0.0 ? 0.0 : (1.0 - group / norm) / curvature;
    for (index_t t = 0; t < tasks; ++t) w[t] = factor * c[t];
}

}  // namespace

// What the sweeps work on. `state` is X'residual of the features in play, tasks x count.
struct GramPath::Play {
    GramPath &path;
    const GramProblem &p;
    double lam = 0.0, ridge = 0.0;
    index_t count = 0;
    std::vector<double> w, h, diagonal, group, l1, c, delta, local;
    std::vector<index_t> moved;
    index_t padded = 0;  // the length of a row of h
    Anderson<Play> anderson;

    explicit Play(GramPath &owner)
        : path(owner), p(owner.p_), c(2 * p.tasks), delta(block_rows * p.tasks), local(block_rows * p.tasks),
          moved(block_rows) {}

    // From the rows and correlations of all features, at a strength.
    void begin(double strength, double ridge_strength, const double *rows, const double *all) {
        lam = strength;
        ridge = ridge_strength;
        anderson.restart();
        count = index_t(path.active_.size());
        w.assign(rows, rows + count * p.tasks);
        padded = panels_of(count) * panel_columns;
        h.assign(p.tasks * padded, 0.0);
        diagonal.resize(count * p.tasks);
        group.resize(count);
        l1.resize(count);
        for (index_t t = 0; t < p.tasks; ++t)
            for (index_t k = 0; k < count; ++k) h[t * padded + k] = all[t * path.padded_ + path.active_[k]];
        for (index_t k = 0; k < count; ++k) {
            const index_t j = path.active_[k];
            group[k] = lam * p.group[j];
            l1[k] = lam * p.l1[j];
            for (index_t t = 0; t < p.tasks; ++t) {
                const index_t m = p.matrices == 1 ? 0 : t;
                const double size = p.sizes[m * p.features + j], own = path.in_play(m, k, k);
                // So little left of a column is no more than rounding: its coefficient stays zero.
                diagonal[k * p.tasks + t] = own > 8.0 * p.rounding * size * size ? own : 0.0;
            }
        }
    }

    double *weights() { return w.data(); }
    double *state() { return h.data(); }
    index_t weight_size() const { return count * p.tasks; }
    index_t state_size() const { return padded * p.tasks; }

    double loss() const {
        double value = 0.0;
        for (index_t t = 0; t < p.tasks; ++t) {
            double inner = 0.0;
            const double *own = h.data() + t * padded, *cross = p.cross + t * p.features;
            for (index_t k = 0; k < count; ++k) inner += w[k * p.tasks + t] * (cross[path.active_[k]] + own[k]);
            value += p.labels[t] - inner;
        }
        return std::max(0.5 * value, 0.0);
    }

    double penalty(index_t k) const {
        double squares = 0.0, sum = 0.0;
        for (index_t t = 0; t < p.tasks; ++t) {
            const double v = w[k * p.tasks + t];
            squares += v * v;
            sum += std::fabs(v);
        }
        return group[k] * std::sqrt(squares) + l1[k] * sum + 0.5 * ridge * squares;
    }

    double objective() const {
        double value = loss();
        for (index_t k = 0; k < count; ++k) value += penalty(k);
        return value;
    }

    double gap() {
        double products = 0.0, weight2 = 0.0, penalties = 0.0, polar = 0.0;
        for (index_t k = 0; k < (p.tasks == 1 ? count : 0); ++k) {  // one task: no norms of rows
            const double v = w[k], product = diagonal[k] > 0.0 ? h[k] - ridge * v : 0.0, strength = group[k] + l1[k];
            products += product * v;
            weight2 += v * v;
            penalties += strength * std::fabs(v);
            const double size = p.positive ? product : std::fabs(product);
            if (size > polar * strength) polar = size / strength;
        }
        for (index_t k = 0; k < (p.tasks == 1 ? 0 : count); ++k) {
            double squares = 0.0, inner = 0.0, sum = 0.0;
            for (index_t t = 0; t < p.tasks; ++t) {
                const double v = w[k * p.tasks + t];
                const double product = diagonal[k * p.tasks + t] > 0.0 ? h[t * padded + k] - ridge * v : 0.0;
                c[t] = product;
                squares += v * v;
                inner += product * v;
                sum += std::fabs(v);
            }
            products += inner;
            weight2 += squares;
            penalties += group[k] * std::sqrt(squares) + l1[k] * sum;
            polar = std::max(polar, row_gauge_inline(c.data(), p.tasks, group[k], l1[k], p.positive));
        }
        const double residual2 = 2.0 * loss() + ridge * weight2;
        double scale = residual2 > 0.0 ? (residual2 + products) / residual2 : 1.0;
        if (polar > 0.0) scale = std::min(scale, 1.0 / polar);
        if (ridge > 0.0) scale = std::min(scale, 1.0);  // as the certificate has it
        scale = std::max(scale, 0.0);
        return 0.5 * (1.0 - scale) * (1.0 - scale) * residual2 + penalties - scale * products;
    }

    // Correlations follow n rows of a block that have moved.
    void apply(index_t block, index_t n) {
        const double operations = double(n) * double(count) * double(p.tasks);
        const int threads = operations > 1e6 ? p.threads : 1;
        const index_t panels = padded / panel_columns;
        if (p.matrices == 1) {
            parallel_for(panels, threads > 1 ? panels / threads + 1 : panels, threads, [&](index_t lo, index_t hi) {
                subtract_shared(path.block_in_play(0, block) + lo * panel_rows * panel_columns, moved.data(), delta.data(),
                                n, p.tasks, h.data() + lo * panel_columns, padded, hi - lo);
            });
        } else {
            parallel_for(p.tasks, threads > 1 ? 1 : p.tasks, threads, [&](index_t begin, index_t end) {
                for (index_t t = begin; t < end; ++t)
                    subtract_own(path.block_in_play(t, block), moved.data(), delta.data() + t, n, p.tasks,
                                 h.data() + t * padded, panels);
            });
        }
        path.work_ += operations;
    }

    // The same inside the block that begins at `first`, for the moved rows begin..end and columns from a panel on.
    void follow_inside(index_t first, index_t size, index_t panel, index_t begin, index_t end, index_t columns) {
        const index_t panels = (std::min(columns, size) + panel_columns - 1) / panel_columns - panel;
        const index_t at = (first / panel_columns + panel) * panel_rows * panel_columns, block = first / panel_rows;
        double *next = local.data() + panel * panel_columns;
        const double *steps = delta.data() + begin * p.tasks;
        if (p.matrices == 1)
            subtract_shared(path.block_in_play(0, block) + at, &moved[begin], steps, end - begin, p.tasks, next, block_rows,
                            panels);
        else
            for (index_t t = 0; t < p.tasks; ++t)
                subtract_own(path.block_in_play(t, block) + at, &moved[begin], steps + t, end - begin, p.tasks,
                             next + t * block_rows, panels);
    }

    // The same for one task: a soft threshold, and the few products that wait for it.
    void epoch_of_entries() {
        constexpr index_t lanes = panel_columns;
        for (index_t first = 0; first < count; first += block_rows) {
            const index_t size = std::min(block_rows, count - first), panels = (size + lanes - 1) / lanes;
            const double *panel = path.block_in_play(0, first / panel_rows) + first / lanes * panel_rows * lanes;
            std::fill(std::copy_n(&h[first], size, local.begin()), local.begin() + panels * lanes, 0.0);
            index_t n = 0, sent = 0;
            for (index_t i = 0; i < size; ++i) {
                if (i % lanes == 0 && n > sent) {
                    const index_t next = i / lanes;
                    subtract_own(panel + next * panel_rows * lanes, &moved[sent], &delta[sent], n - sent, 1, &local[i],
                                 panels - next);
                    sent = n;
                }
                const index_t k = first + i;
                const double curvature = diagonal[k], c = local[i] + curvature * w[k];
                const double over = (p.positive ? c : std::fabs(c)) - (group[k] + l1[k]);
                const double to = over > 0.0 && curvature > 0.0 ? std::copysign(over, c) / (curvature + ridge) : 0.0;
                const double step = to - w[k];
                if (step == 0.0) continue;
                w[k] = to;
                delta[n] = step;
                moved[n++] = i;
                const double *row = panel + (i / lanes * panel_rows + i) * lanes;
                double *near = &local[i / lanes * lanes];
#pragma omp simd
                for (index_t e = 0; e < lanes; ++e) near[e] -= step * row[e];
            }
            if (n > 0) apply(first / panel_rows, n);
        }
    }

    // Each row solved exactly in turn; correlations outside a block follow when the block is done.
    void epoch() {
        if (p.tasks == 1) return epoch_of_entries();
        const index_t tasks = p.tasks;
        double *row = c.data() + tasks;
        for (index_t first = 0; first < count; first += block_rows) {
            const index_t size = std::min(block_rows, count - first);
            for (index_t t = 0; t < tasks; ++t)
                for (index_t i = 0; i < size; ++i) local[t * block_rows + i] = h[t * padded + first + i];
            index_t n = 0, sent = 0;
            for (index_t i = 0; i < size; ++i) {
                if (i % panel_columns == 0 && n > sent) {  // a panel is done: the rest of the block follows
                    follow_inside(first, size, i / panel_columns, sent, n, size);
                    sent = n;
                }
                const index_t k = first + i;
                double *own = w.data() + k * tasks, *step = delta.data() + n * tasks;
                const double *curvature = diagonal.data() + k * tasks;
                for (index_t t = 0; t < tasks; ++t)
                    c[t] = curvature[t] > 0.0 ? local[t * block_rows + i] + curvature[t] * own[t] : 0.0;
                solve_one(c.data(), curvature, tasks, p.matrices == 1, group[k], l1[k], ridge, p.positive, row);
                bool any = false;
                for (index_t t = 0; t < tasks; ++t) {
                    step[t] = row[t] - own[t];
                    any |= step[t] != 0.0;
                }
                if (!any) continue;
                for (index_t t = 0; t < tasks; ++t) own[t] = row[t];
                moved[n++] = i;
                const index_t panel = i / panel_columns;
                if (i % panel_columns + 1 < panel_columns) follow_inside(first, size, panel, n - 1, n, (panel + 1) * panel_columns);
            }
            if (n > 0) apply(first / panel_rows, n);
        }
    }
};

GramPath::GramPath(const GramProblem &problem) : p_(problem), place_(problem.features, -1) {
    padded_ = panels_of(p_.features) * panel_columns;
    h_.assign(p_.tasks * padded_, 0.0);
    for (index_t t = 0; t < p_.tasks; ++t)
        std::copy_n(p_.cross + t * p_.features, p_.features, h_.begin() + t * padded_);
    start_h_ = h_;
    gauges_.resize(p_.features);
    kappa_.resize(p_.tasks);
    reach_.resize(p_.tasks);
    entries_ = p_.positive || std::any_of(p_.l1, p_.l1 + p_.features, [](double v) { return v > 0.0; });
    // Every coefficient on its own, and a matrix per task: the problem falls apart into one of each task.
    const bool apart = p_.tasks > 1 && p_.matrices == p_.tasks &&
                       std::all_of(p_.group, p_.group + p_.features, [](double v) { return v == 0.0; });
    // Few features are all in play at once, as they lie; many are packed as they come.
    if (apart) {
        take_apart();
    } else if (p_.features <= 4 * block_rows) {
        all_in_play();
    } else {
        stride_ = std::min(p_.features, std::max<index_t>(p_.room, 1));
        // memory that is zero until it is used
        packed_.reset(static_cast<double *>(std::calloc(std::size_t(p_.matrices) * panel_cells(stride_), sizeof(double))));
        if (!packed_) throw std::bad_alloc();
    }
    w_.assign(active_.size() * p_.tasks, 0.0);
}

// All features as they lie, with the coefficients of those that were in play.
void GramPath::all_in_play() {
    for (std::vector<double> *rows : {&w_, &w_before_, &start_w_}) {
        if (rows->empty()) continue;
        std::vector<double> all(p_.features * p_.tasks, 0.0);
        for (std::size_t k = 0; k < active_.size(); ++k)
            std::copy_n(rows->begin() + k * p_.tasks, p_.tasks, all.begin() + active_[k] * p_.tasks);
        rows->swap(all);
    }
    packed_.reset();
    stride_ = p_.features;
    active_.resize(p_.features);
    for (index_t j = 0; j < p_.features; ++j) place_[j] = active_[j] = j;
}

// From now on every task is solved by its active set.
void GramPath::take_apart() {
    all_in_play();
    sets_.reserve(p_.tasks);
    for (index_t t = 0; t < p_.tasks; ++t)
        sets_.emplace_back(EntryProblem{p_.gram + t * panel_cells(p_.features), p_.features, p_.sizes + t * p_.features,
                                        p_.group, p_.l1, p_.rounding, 1e-14 * std::sqrt(p_.labels[t]), p_.positive});
}

const double *GramPath::block_in_play(index_t t, index_t block) const {
    const index_t m = p_.matrices == 1 ? 0 : t;
    return (packed_ ? packed_.get() : p_.gram) + m * panel_cells(stride_) + panel_at(stride_, block * panel_rows, 0);
}

double GramPath::in_play(index_t m, index_t k, index_t l) const {
    return (packed_ ? packed_.get() : p_.gram)[m * panel_cells(stride_) + panel_at(stride_, k, l)];
}

// Features that come near their threshold are in play from now on.
void GramPath::join(double threshold) {
    if (!packed_) return;
    for (index_t j = 0; j < p_.features; ++j) {
        if (place_[j] >= 0 || !(gauges_[j] > threshold)) continue;
        const index_t k = index_t(active_.size());
        place_[j] = k;
        active_.push_back(j);
        if (k >= stride_) continue;  // crowded: the caller sees it
        for (index_t m = 0; m < p_.matrices; ++m) {
            const double *all = p_.gram + m * panel_cells(p_.features);
            double *some = packed_.get() + m * panel_cells(stride_);
            for (index_t i = 0; i <= k; ++i)
                some[panel_at(stride_, k, i)] = some[panel_at(stride_, i, k)] = all[panel_at(p_.features, j, active_[i])];
        }
    }
    w_.resize(active_.size() * p_.tasks, 0.0);
    if (!w_before_.empty()) w_before_.resize(w_.size(), 0.0);
    start_w_.resize(w_.size(), 0.0);
}

double GramPath::objective(double lam, double ridge, const double *w, const double *h) const {
    double value = 0.0;
    for (index_t t = 0; t < p_.tasks; ++t) value += 0.5 * p_.labels[t];
    for (index_t k = 0; k < index_t(active_.size()); ++k) {
        const index_t j = active_[k];
        double squares = 0.0, sum = 0.0;
        for (index_t t = 0; t < p_.tasks; ++t) {
            const double v = w[k * p_.tasks + t];
            squares += v * v;
            sum += std::fabs(v);
            value -= 0.5 * v * (p_.cross[t * p_.features + j] + h[t * padded_ + j]);
        }
        value += lam * (p_.group[j] * std::sqrt(squares) + p_.l1[j] * sum) + 0.5 * ridge * squares;
    }
    return value;
}

// Upper bounds of all gauges, with what rounding may have done to the correlations.
void GramPath::measure(double lam, double ridge, const double *w, const double *h, double loose) {
    const index_t d = p_.features, count = index_t(active_.size());
    std::fill(reach_.begin(), reach_.end(), 0.0);
    for (index_t k = 0; k < count; ++k)
        for (index_t t = 0; t < p_.tasks; ++t)
            reach_[t] += p_.sizes[(p_.matrices == 1 ? 0 : t) * d + active_[k]] * std::fabs(w[k * p_.tasks + t]);
    const double g = loose * (p_.rounding + gamma(double(count) + 8.0));
    for (index_t t = 0; t < p_.tasks; ++t) kappa_[t] = g * (p_.label_sizes[t] + reach_[t]);
    if (loose > 1.0)  // correlations carried along have the errors of the points they come from
        for (const std::vector<double> *rows : {&w_, &w_before_})
            for (index_t t = 0; t < p_.tasks; ++t) {
                double reach = 0.0;
                for (index_t k = 0; k < index_t(rows->size()) / p_.tasks; ++k)
                    reach += p_.sizes[(p_.matrices == 1 ? 0 : t) * d + active_[k]] * std::fabs((*rows)[k * p_.tasks + t]);
                kappa_[t] = std::max(kappa_[t], g * (p_.label_sizes[t] + reach));
            }
    auto upper = [&](index_t t, index_t j) {
        const double v = p_.positive ? h[t * padded_ + j] : std::fabs(h[t * padded_ + j]);
        return v + kappa_[t] * p_.sizes[(p_.matrices == 1 ? 0 : t) * d + j] + lost_squares * p_.label_sizes[t];
    };
    std::vector<double> m(p_.tasks);
    if (entries_) {
        for (index_t j = 0; j < d; ++j) {
            for (index_t t = 0; t < p_.tasks; ++t) m[t] = upper(t, j);
            gauges_[j] = row_gauge_inline(m.data(), p_.tasks, lam * p_.group[j], lam * p_.l1[j], p_.positive);
        }
    } else if (p_.tasks == 1) {  // no norms of rows
        const double k = kappa_[0], low = lost_squares * p_.label_sizes[0];
#pragma omp simd
        for (index_t j = 0; j < d; ++j)
            gauges_[j] = (std::fabs(h[j]) + k * p_.sizes[j] + low) / (lam * p_.group[j]);
    } else {
        std::fill(gauges_.begin(), gauges_.end(), 0.0);
        for (index_t t = 0; t < p_.tasks; ++t) {
            const double *own = h + t * padded_, *size = p_.sizes + (p_.matrices == 1 ? 0 : t) * d;
            const double k = kappa_[t], low = lost_squares * p_.label_sizes[t];
            double *out = gauges_.data();
#pragma omp simd
            for (index_t j = 0; j < d; ++j) {
                const double v = std::fabs(own[j]) + k * size[j] + low;
                out[j] += v * v;
            }
        }
        for (index_t j = 0; j < d; ++j) gauges_[j] = std::sqrt(gauges_[j]) / (lam * p_.group[j]);
    }
    if (ridge == 0.0) return;
    for (index_t k = 0; k < count; ++k) {  // the ridge subtracts from the correlations of rows that are not zero
        const index_t j = active_[k];
        bool any = false;
        for (index_t t = 0; t < p_.tasks; ++t) {
            const double v = w[k * p_.tasks + t], product = h[t * padded_ + j] - ridge * v;
            any |= v != 0.0;
            m[t] = (p_.positive ? product : std::fabs(product)) + kappa_[t] * p_.sizes[(p_.matrices == 1 ? 0 : t) * d + j] +
                   lost_squares * p_.label_sizes[t] + gamma(6.0) * (std::fabs(h[t * padded_ + j]) + ridge * std::fabs(v));
        }
        if (any) gauges_[j] = row_gauge_inline(m.data(), p_.tasks, lam * p_.group[j], lam * p_.l1[j], p_.positive);
    }
}

// h = c - G W over all features, from nothing but W: what a certificate may be made of.
void GramPath::fresh(const double *w, double *h) {
    std::vector<index_t> live;
    std::vector<double> delta;
    for (index_t j = 0; j < p_.features; ++j) {
        if (place_[j] < 0) continue;
        const double *own = w + place_[j] * p_.tasks;
        if (std::all_of(own, own + p_.tasks, [](double v) { return v == 0.0; })) continue;
        live.push_back(j);
        delta.insert(delta.end(), own, own + p_.tasks);
    }
    for (index_t t = 0; t < p_.tasks; ++t)
        std::copy_n(p_.cross + t * p_.features, p_.features, h + t * padded_);
    follow(live, delta, h);
}

// h -= G_j delta_j for some features, in rising order.
void GramPath::follow(std::vector<index_t> &live, const std::vector<double> &delta, double *h) {
    const index_t d = p_.features, tasks = p_.tasks, n = index_t(live.size()), panels = panels_of(d);
    std::vector<std::pair<index_t, index_t>> blocks;  // where the rows of each block begin and end
    for (index_t i = 0; i < n; ++i) {
        if (i == 0 || live[i] / panel_rows != live[i - 1] / panel_rows) blocks.emplace_back(i, i);
        ++blocks.back().second;
    }
    std::vector<index_t> inside(n);
    for (index_t i = 0; i < n; ++i) inside[i] = live[i] % panel_rows;
    const double operations = double(n) * double(d) * double(tasks);
    const int threads = operations > 1e6 ? p_.threads : 1;
    const index_t grain = p_.matrices > 1 || threads == 1 ? panels : std::max<index_t>(8, panels / (4 * threads) + 1);
    auto part = [&](index_t m, index_t lo, index_t hi) {
        const double *gram = p_.gram + m * panel_cells(d);
        for (const auto &[first, last] : blocks) {
            const double *panel = gram + panel_at(d, live[first] / panel_rows * panel_rows, lo * panel_columns);
            if (p_.matrices == 1)
                subtract_shared(panel, inside.data() + first, delta.data() + first * tasks, last - first, tasks,
                                h + lo * panel_columns, padded_, hi - lo);
            else
                subtract_own(panel, inside.data() + first, delta.data() + first * tasks + m, last - first, tasks,
                             h + m * padded_ + lo * panel_columns, hi - lo);
        }
    };
    if (p_.matrices == 1)
        parallel_for(panels, grain, threads, [&](index_t lo, index_t hi) { part(0, lo, hi); });
    else
        parallel_for(p_.matrices, 1, threads, [&](index_t begin, index_t end) {
            for (index_t m = begin; m < end; ++m) part(m, 0, panels);
        });
    work_ += operations;
}

// Bound of the duality gap at rows W with the correlations h, computed afresh; measures the gauges.
double GramPath::certify(double lam, double ridge, const double *w, const double *h, GramValue &value, double loose) {
    measure(lam, ridge, w, h, loose);
    const index_t d = p_.features, count = index_t(active_.size());
    double polar = 0.0;
    index_t worst = 0;
    for (index_t j = 0; j < d; ++j)
        if (gauges_[j] > polar) polar = gauges_[worst = j];
    double inner = 0.0, absolute = 0.0, norm = 0.0, weight2 = 0.0;
    std::vector<double> residual2(p_.tasks), m(p_.tasks);
    for (index_t t = 0; t < p_.tasks; ++t) residual2[t] = p_.labels[t];
    for (index_t k = 0; k < count; ++k) {
        const index_t j = active_[k];
        double squares = 0.0, sum = 0.0;
        for (index_t t = 0; t < p_.tasks; ++t) {
            const double v = w[k * p_.tasks + t], product = h[t * padded_ + j];
            squares += v * v;
            sum += std::fabs(v);
            inner += v * (product - ridge * v);
            absolute += std::fabs(v * product);
            residual2[t] -= v * (p_.cross[t * d + j] + product);
        }
        weight2 += squares;
        norm += lam * (p_.group[j] * std::sqrt(squares) + p_.l1[j] * sum);
    }
    double total = 0.0, error = 0.0, off = 0.0;  // of <W, h>, and of the residual's square
    for (index_t t = 0; t < p_.tasks; ++t) {
        total += std::max(residual2[t], 0.0);
        error += kappa_[t] * reach_[t];
        off += 4.0 * kappa_[t] * reach_[t];
        off += 2.0 * (p_.rounding + gamma(double(count) + 8.0)) * p_.label_sizes[t] * p_.label_sizes[t];
    }
    const double sums = gamma(double(count) * double(p_.tasks) + 24.0), tasks = gamma(double(p_.tasks) + 64.0);
    error += sums * (absolute + ridge * weight2);
    const double residual = (total + off) * (1.0 + tasks) + ridge * weight2 * (1.0 + sums);
    const double limit = polar > 0.0 ? 1.0 / (polar * (1.0 + p_.gauge_error)) : INFINITY;
    double scale = residual > 0.0 ? (total + ridge * weight2 + inner) / residual : 1.0;
    scale = std::max(std::min(scale, ridge > 0.0 ? std::min(limit, 1.0) : limit), 0.0);
    value.objective = 0.5 * total + norm + 0.5 * ridge * weight2;
    value.objective_error = 0.5 * off + sums * (norm + ridge * weight2) + tasks * value.objective;
    double gap = 0.5 * (1.0 - scale) * (1.0 - scale) * residual;
    gap += std::max(norm * (1.0 + sums) - scale * (inner - error), 0.0);
    value.gap = gap * (1.0 + tasks) + value.objective_error;
    scale_ = scale;
    // What of this is rounding: the gauge that decides without its errors, and the errors of the sums.
    for (index_t t = 0; t < p_.tasks; ++t) {
        m[t] = h[t * padded_ + worst];
        if (ridge > 0.0 && place_[worst] >= 0) m[t] -= ridge * w[place_[worst] * p_.tasks + t];
    }
    const double plain = row_gauge_inline(m.data(), p_.tasks, lam * p_.group[worst], lam * p_.l1[worst], p_.positive);
    lost_ = value.objective_error + error + std::max(polar - plain, 0.0) * norm;
    return value.gap;
}

// Rows that the ball about the scaled residual proves to be zero; the gauges are those of that point.
index_t GramPath::rejected(double lam, double ridge, double gap) const {
    const double radius = std::sqrt(2.0 * gap) * (1.0 + gamma(8.0));
    index_t count = 0;
    for (index_t j = 0; j < p_.features; ++j) {
        double longest = 0.0;
        for (index_t m = 0; m < p_.matrices; ++m) longest = std::max(longest, p_.sizes[m * p_.features + j]);
        longest = std::sqrt(longest * longest + ridge);
        const double reach = radius * longest / (lam * (p_.group[j] + p_.l1[j]));
        count += scale_ * gauges_[j] + reach < 1.0 - 1e-9;
    }
    return count;
}

// The secant of the last two solutions, linear in the strength; rows that turn round stop at zero.
void GramPath::extrapolate(double lam) {
    const index_t tasks = p_.tasks;
    const double ahead = (lam_ - lam) / (lam_before_ - lam_);
    start_w_ = w_;
    std::vector<double> delta;
    std::vector<index_t> turned;
    for (index_t j = 0; j < p_.features; ++j) {
        const index_t k = place_[j];
        if (k < 0) continue;
        double *to = start_w_.data() + k * tasks;
        const double *now = w_.data() + k * tasks, *old = w_before_.data() + k * tasks;
        double along = 0.0;
        for (index_t t = 0; t < tasks; ++t) {
            to[t] = now[t] + ahead * (now[t] - old[t]);
            along += to[t] * now[t];
        }
        bool any = false;
        const std::size_t at = delta.size();
        for (index_t t = 0; t < tasks; ++t) {
            if (to[t] == 0.0 || !(along <= 0.0 || (entries_ && to[t] * now[t] <= 0.0))) continue;
            if (!any) delta.resize(at + tasks, 0.0);
            any = true;
            delta[at + t] = -to[t];
            to[t] = 0.0;
        }
        if (any) turned.push_back(j);
    }
    for (std::size_t e = 0; e < h_.size(); ++e) start_h_[e] = h_[e] + ahead * (h_[e] - h_before_[e]);
    if (!turned.empty()) follow(turned, delta, start_h_.data());
}

// Of two equal columns one may be left with a coefficient that is nothing but rounding: rows whose whole effect is below
// the rounding of the labels become zero.
void GramPath::drop_rounding() {
    double labels = 0.0;
    for (index_t t = 0; t < p_.tasks; ++t) labels += p_.labels[t];
    const double least = 1e-14 * std::sqrt(labels);
    for (index_t k = 0; k < index_t(active_.size()); ++k) {
        double *own = start_w_.data() + k * p_.tasks, squares = 0.0, longest = 0.0;
        for (index_t t = 0; t < p_.tasks; ++t) squares += own[t] * own[t];
        for (index_t m = 0; m < p_.matrices; ++m)
            longest = std::max(longest, p_.sizes[m * p_.features + active_[k]]);
        if (squares > 0.0 && std::sqrt(squares) * longest <= least) std::fill_n(own, p_.tasks, 0.0);
    }
}

// Every task by its active set, until the gap of all is small enough; false where that does not get on.
bool GramPath::solve_entries(double lam, double ridge, double goal, index_t max_epochs, GramValue &value) {
    const index_t tasks = p_.tasks;
    std::vector<double> work(tasks);
    std::vector<ActiveSet::Round> found(tasks, ActiveSet::Round::moved);
    for (index_t round = 0; round < most_rounds && value.epochs < max_epochs; ++round) {
        std::fill(work.begin(), work.end(), 0.0);
        const int threads = p_.features * tasks > 2000 ? p_.threads : 1;
        parallel_for(tasks, threads > 1 ? 1 : tasks, threads, [&](index_t begin, index_t end) {
            for (index_t t = begin; t < end; ++t) {
                if (found[t] == ActiveSet::Round::still) continue;
                found[t] = sets_[t].round(lam, ridge, p_.cross + t * p_.features, &start_w_[t], tasks,
                                          &start_h_[t * padded_], work[t]);
            }
        });
        const auto any = [&](ActiveSet::Round what) { return std::find(found.begin(), found.end(), what) != found.end(); };
        if (any(ActiveSet::Round::dependent)) return false;
        for (double v : work) work_ += v;
        work_ += 16.0 * double(p_.features) * double(tasks);
        ++value.epochs;
        if (certify(lam, ridge, start_w_.data(), start_h_.data(), value, 1.0) <= goal) return true;
        if (!any(ActiveSet::Round::moved)) return false;
    }
    return false;
}

GramStop GramPath::solve(double lam, double ridge, double goal, index_t max_epochs, Play &play, GramValue &value) {
    const bool secant = !w_before_.empty() && lam_before_ != lam_;
    bool ahead = false;
    if (secant) {
        extrapolate(lam);
        ahead = objective(lam, ridge, start_w_.data(), start_h_.data()) < objective(lam, ridge, w_.data(), h_.data());
    }
    if (!ahead) {
        start_w_ = w_;
        start_h_ = h_;
    }
    // Carried along, correlations of two points have twice their rounding, and more where the step is long.
    const double step = ahead ? (lam_ - lam) / (lam_before_ - lam_) : 0.0;
    certify(lam, ridge, start_w_.data(), start_h_.data(), value, 4.0 * (1.0 + step) * (1.0 + step));
    value.rejected = rejected(lam, ridge, value.gap);
    if (!sets_.empty() && solve_entries(lam, ridge, goal, max_epochs, value)) return GramStop::done;
    join(near);
    double inner = 0.8 * goal, before = INFINITY;
    while (true) {
        if (index_t(active_.size()) > std::min(p_.room, stride_)) return GramStop::crowded;
        play.begin(lam, ridge, start_w_.data(), start_h_.data());
        double gap = play.gap();
        while (gap > inner && value.epochs < max_epochs) {
            play.epoch();
            work_ += 8.0 * double(play.count) * double(p_.tasks) + 1e3;  // rows that do not move, and the gap
            ++value.epochs;
            play.anderson.push(play);
            if (play.anderson.ready()) play.anderson.extrapolate(play, p_.positive);
            gap = play.gap();
        }
        start_w_ = play.w;
        drop_rounding();
        fresh(start_w_.data(), start_h_.data());
        certify(lam, ridge, start_w_.data(), start_h_.data(), value, 1.0);
        if (!std::isfinite(value.gap)) return GramStop::rounding;
        if (value.gap <= goal) return GramStop::done;
        if (lost_ > 0.1 * goal) return GramStop::rounding;
        if (value.epochs >= max_epochs) return GramStop::spent;
        const std::size_t known = active_.size();
        join(1.0);
        if (active_.size() == known) {
            // Solved as asked, yet the gap over all features is too large: ask for more.
            if (gap <= inner) inner *= 0.2;
            if (inner < 1e-4 * goal || !(value.gap < before)) return GramStop::rounding;
            before = value.gap;
        }
    }
}

// Whether so many multiplications are more work than a few steps of Newton's method in the row norms: by counting, with
// the two kinds of multiplications at the rates of their loops.
bool GramPath::outdone(double work) const {
    if (!(p_.rows > 0.0)) return false;
    const double n = p_.rows, a = double(active_.size());
    return work > 2.0 * double(p_.matrices) * (n * n * a + 0.5 * n * a * a + n * n * n / 3.0);
}

GramStop GramPath::advance(const double *lams, const double *ridges, const double *goals, index_t count,
                           index_t max_epochs, double budget) {
    values.clear();
    features.clear();
    rows.clear();
    work_ = 0.0;
    const index_t tasks = p_.tasks;
    Play play(*this);  // for all values: what it has room for need not be asked for again
    for (index_t v = 0; v < count; ++v) {
        if (v > 0 && work_ > budget) return GramStop::paused;
        if (costly_ >= 2) return GramStop::crowded;
        if (slow_ >= 2 && tasks == 1 && sets_.empty()) take_apart();
        const double before = work_;
        const auto began = std::chrono::steady_clock::now();
        GramValue value;
        const GramStop stop = solve(lams[v], ridges[v], goals[v], max_epochs, play, value);
        if (stop != GramStop::done && stop != GramStop::spent) return stop;
        costly_ = outdone(work_ - before) ? costly_ + 1 : 0;
        slow_ = value.epochs > many_epochs ? slow_ + 1 : 0;
        w_before_.swap(w_);
        h_before_.swap(h_);
        w_ = start_w_;
        h_ = start_h_;
        w_before_.resize(w_.size(), 0.0);
        lam_before_ = v == 0 && lam_ == 0.0 ? lams[v] : lam_;
        lam_ = lams[v];
        value.first = index_t(features.size());
        for (index_t j = 0; j < p_.features; ++j) {
            if (place_[j] < 0) continue;
            const double *own = w_.data() + place_[j] * tasks;
            if (std::all_of(own, own + tasks, [](double x) { return x == 0.0; })) continue;
            features.push_back(j);
            rows.insert(rows.end(), own, own + tasks);
        }
        value.count = index_t(features.size()) - value.first;
        value.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        values.push_back(value);
        if (stop == GramStop::spent) return stop;
    }
    return GramStop::done;
}

namespace {

// Rows of one square of a Gram matrix that are summed on their own: so many that adding the sums is nothing.
constexpr index_t piece_rows = 1024;

// The square of columns i.. and j.. over some rows, lower part alone where these are the same.
void square_of(const double *x, index_t rows, index_t low, index_t high, index_t i, index_t tall, index_t j, index_t wide,
               double *sums) {
    if (i == j) {
        const int size = static_cast<int>(tall), depth = static_cast<int>(high - low), step = static_cast<int>(rows);
        const double one = 1.0, zero = 0.0;
        blas.dsyrk("U", "T", &size, &depth, &one, x + i * rows + low, &step, &zero, sums, &size);
    } else {
        gemm('T', 'N', wide, tall, high - low, x + j * rows + low, rows, x + i * rows + low, rows, 0.0, sums, wide);
    }
}

void add_square(const double *sums, index_t features, index_t i, index_t tall, index_t j, index_t wide, double *out) {
    for (index_t r = 0; r < tall; ++r)
        for (index_t c = 0; c < (i == j ? r + 1 : wide); ++c) {
            const double value = sums[r * wide + c];
            out[panel_at(features, i + r, j + c)] += value;
            if (i + r != j + c) out[panel_at(features, j + c, i + r)] += value;
        }
}

}  // namespace

void add_grams(const double *x, index_t rows, const index_t *offsets, index_t matrices, index_t features, int threads,
               double *gram) {
    // Squares of a fixed size, so that the same input gives the same bytes whatever the threads.
    const index_t side = features <= 4 * panel_rows ? 2 * panel_rows : 4 * panel_rows, across = (features + side - 1) / side;
    const index_t pairs = across * (across + 1) / 2;
    if (matrices == 1 && pairs == 1 && rows >= 2 * piece_rows) {  // one square: its rows are shared out
        const index_t pieces = std::min<index_t>(rows / piece_rows, 64), cells = features * features;
        std::vector<double> sums(pieces * cells);
        parallel_for(pieces, 1, threads, [&](index_t begin, index_t end) {
            for (index_t k = begin; k < end; ++k)
                square_of(x, rows, rows * k / pieces, rows * (k + 1) / pieces, 0, features, 0, features, &sums[k * cells]);
        });
        for (index_t k = 1; k < pieces; ++k)
            for (index_t e = 0; e < cells; ++e) sums[e] += sums[k * cells + e];
        add_square(sums.data(), features, 0, features, 0, features, gram);
        return;
    }
    parallel_for(matrices * pairs, 1, threads, [&](index_t begin, index_t end) {
        const index_t used = std::min(side, features);
        std::vector<double> sums(used * used);
        for (index_t task = begin; task < end; ++task) {
            const index_t m = task / pairs, lo = matrices == 1 ? 0 : offsets[m], hi = matrices == 1 ? rows : offsets[m + 1];
            index_t a = 0, left = task % pairs;
            while (left > a) left -= ++a;  // the pair (a, left), left <= a
            const index_t i = a * side, j = left * side;
            const index_t tall = std::min(side, features - i), wide = std::min(side, features - j);
            if (hi == lo) continue;
            square_of(x, rows, lo, hi, i, tall, j, wide, sums.data());
            add_square(sums.data(), features, i, tall, j, wide, gram + m * panel_cells(features));
        }
    });
}

void subtract_outer(const double *first, const double *second, index_t matrices, index_t count, index_t features,
                    int threads, double *gram) {
    const index_t panels = panels_of(features), blocks = (features + panel_rows - 1) / panel_rows;
    const int used = double(matrices) * double(features) * double(features) > 1e5 ? threads : 1;
    parallel_for(matrices * blocks, used > 1 ? 1 : matrices * blocks, used, [&](index_t begin, index_t end) {
        for (index_t part = begin; part < end; ++part) {
            const index_t m = part / blocks, low = part % blocks * panel_rows, tall = std::min(panel_rows, features - low);
            double *block = gram + m * panel_cells(features) + panel_at(features, low, 0);
            for (index_t z = 0; z < count; ++z) {
                const double *u = first + (m * count + z) * features + low, *v = second + (m * count + z) * features;
                for (index_t c = 0; c < panels; ++c) {
                    double wide[panel_columns] = {};
                    std::copy_n(v + c * panel_columns, std::min(panel_columns, features - c * panel_columns), wide);
                    double *out = block + c * panel_rows * panel_columns;
                    for (index_t r = 0; r < tall; ++r, out += panel_columns)
#pragma omp simd
                        for (index_t i = 0; i < panel_columns; ++i) out[i] -= u[r] * wide[i];
                }
            }
        }
    });
}

}  // namespace tasksieve
