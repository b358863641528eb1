#include "smooth_path.hpp"

#include <chrono>

#include "blas.hpp"
#include "row_update.hpp"

namespace tasksieve {

namespace {

constexpr index_t most_models = 60;    // at one value: a path that needs more has no business here
constexpr index_t most_epochs = 100;   // of coordinate descent on one model
constexpr double share = 0.02;         // of the gap, and
constexpr double goal_share = 0.05;     // of the goal: how well a model is solved
constexpr double faithful = 0.1;       // a model that leaves more of the gap than this is made anew
constexpr double strong = 0.98;        // of the threshold of the strong rule: such features are in play
constexpr double balanced = 1e-7;      // of the slopes: what is left of their sum at an intercept that is good enough
constexpr double resolved = 1e-13;     // of the diagonal: less is rounding, the column is a constant under these weights
constexpr double rise = 1e-3, noise = 1e-12;  // of the gap and of the objective: a rise that may be rounding

// What a loss does to one row; `power` is an exponential that it keeps of the prediction.
struct LogisticRow {
    static TASKSIEVE_INLINE void at(double y, double z, double &slope, double &curvature, double &power) {
        const double u = y * z;
        power = std::exp(-std::fabs(u));
        const double sure = 1.0 / (1.0 + power), unsure = power * sure;
        slope = y * (u > 0.0 ? unsure : sure);
        curvature = unsure * sure;
    }
    static TASKSIEVE_INLINE double value(double y, double z, double power) {
        return std::max(-y * z, 0.0) + std::log1p(power);
    }
    // value + conjugate + p z
    static TASKSIEVE_INLINE double excess(double y, double z, double power, double p) {
        const double q = std::min(std::max(y * p, 0.0), 1.0);
        double found = value(y, z, power) + p * z;
        if (q > 0.0) found += q * std::log(q);
        if (q < 1.0) found += (1.0 - q) * std::log1p(-q);
        return found;
    }
    static TASKSIEVE_INLINE double room(double y, double p, bool up) {
        return std::min(up ? std::max(y, 0.0) - p : p - std::min(y, 0.0), 0.25);
    }
};

struct PoissonRow {
    static TASKSIEVE_INLINE void at(double y, double z, double &slope, double &curvature, double &power) {
        power = curvature = std::exp(z);
        slope = y - power;
    }
    static TASKSIEVE_INLINE double value(double y, double z, double power) { return power - y * z; }
    static TASKSIEVE_INLINE double excess(double y, double z, double power, double p) {
        const double mean = y - p;
        return mean > 0.0 ? mean * (std::log(mean) - z) - mean + power : power;
    }
    static TASKSIEVE_INLINE double room(double y, double p, bool) { return std::max(y - p, 0.0); }
};

// out += sum of columns times their coefficients.
TASKSIEVE_MULTIVERSION void add_columns(const double *const *columns, const double *w, index_t count, index_t n,
                                        double *out) {
    index_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double *a = columns[k], *b = columns[k + 1], *c = columns[k + 2], *d = columns[k + 3];
        const double wa = w[k], wb = w[k + 1], wc = w[k + 2], wd = w[k + 3];
#pragma omp simd
        for (index_t i = 0; i < n; ++i) out[i] += (wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i]);
    }
    for (; k < count; ++k) {
        const double *a = columns[k];
        const double wa = w[k];
#pragma omp simd
        for (index_t i = 0; i < n; ++i) out[i] += wa * a[i];
    }
}

// Inner products of columns with a vector.
TASKSIEVE_MULTIVERSION void products(const double *const *columns, index_t count, const double *r, index_t n,
                                     double *out) {
    index_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const double *a = columns[k], *b = columns[k + 1], *c = columns[k + 2], *d = columns[k + 3];
        double sa = 0.0, sb = 0.0, sc = 0.0, sd = 0.0;
#pragma omp simd reduction(+ : sa, sb, sc, sd)
        for (index_t i = 0; i < n; ++i) {
            sa += a[i] * r[i];
            sb += b[i] * r[i];
            sc += c[i] * r[i];
            sd += d[i] * r[i];
        }
        out[k] = sa;
        out[k + 1] = sb;
        out[k + 2] = sc;
        out[k + 3] = sd;
    }
    for (; k < count; ++k) {
        const double *a = columns[k];
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (index_t i = 0; i < n; ++i) sum += a[i] * r[i];
        out[k] = sum;
    }
}

TASKSIEVE_MULTIVERSION void subtract_multiple(double factor, const double *from, index_t n, double *out) {
#pragma omp simd
    for (index_t i = 0; i < n; ++i) out[i] -= factor * from[i];
}

}  // namespace

SmoothPath::SmoothPath(const SmoothProblem &problem) : p_(problem) {
    const index_t tasks = p_.tasks, wide = p_.features * tasks;
    samples_ = p_.offsets[tasks];
    room_ = std::min(p_.features, std::max<index_t>(p_.room, 1));
    stride_ = (room_ + 8) / 8 * 8;
    has_weights_ = std::any_of(p_.root, p_.root + samples_, [](double v) { return v != 1.0; });
    inverse_root_.resize(samples_);
    for (index_t i = 0; i < samples_; ++i) inverse_root_[i] = p_.root[i] > 0.0 ? 1.0 / p_.root[i] : 0.0;
    for (std::vector<double> *vector : {&z_, &slope_, &curvature_, &power_, &residual_, &second_})
        vector->assign(samples_, 0.0);
    for (std::vector<double> *rows : {&w_, &c_}) rows->assign(wide, 0.0);
    b_.assign(tasks, 0.0);
    gauges_.assign(p_.features, 0.0);
    place_.assign(p_.features, -1);
    gram_.resize(tasks * room_ * stride_);
    packed_.reset(new double[(p_.shared ? p_.rows : samples_) * room_]);
    for (std::vector<double> *rows : {&diagonal_, &beside_, &v_}) rows->assign(room_ * tasks, 0.0);
    g_.assign(stride_ * tasks, 0.0);
    total_.assign(tasks, 0.0);
}

void SmoothPath::list_live() {
    live_.clear();
    for (index_t j = 0; j < p_.features; ++j)
        for (index_t t = 0; t < p_.tasks; ++t)
            if (w_[j * p_.tasks + t] != 0.0) {
                live_.push_back(j);
                break;
            }
}

// The loss at z, with the best intercept near b: Newton's method between bounds. False where there is none.
template <class Row> bool SmoothPath::evaluate_task(index_t t) {
    const index_t first = p_.offsets[t], last = p_.offsets[t + 1];
    const double *y = p_.labels, *root = p_.root;
    double b = 0.0, low = -INFINITY, high = INFINITY, sum = 0.0;
    if (p_.intercept) b = b_[t];
    for (int step = 0;; ++step) {
        double curvature = 0.0, size = 0.0;
        sum = 0.0;
        for (index_t i = first; i < last; ++i) {
            Row::at(y[i], z_[i] + b, slope_[i], curvature_[i], power_[i]);
            const double s = root[i] * root[i];
            sum += s * slope_[i];
            size += s * std::fabs(slope_[i]);
            curvature += s * curvature_[i];
        }
        if (!std::isfinite(sum)) return false;
        if (!p_.intercept || std::fabs(sum) <= balanced * size) break;
        if (step == 60 || !(curvature > 0.0)) return false;
        (sum > 0.0 ? low : high) = b;
        double next = b + std::min(std::max(sum / curvature, -5.0), 5.0);
        if (!(next > low && next < high) && std::isfinite(low) && std::isfinite(high)) next = 0.5 * (low + high);
        if (next == b) break;
        b = next;
    }
    b_[t] = b;
    // Moved as far as the intercept leaves something: then the slopes are a dual point.
    double move = 0.0;
    const bool down = sum > 0.0;
    if (p_.intercept && sum != 0.0) {
        double room = 0.0;
        for (index_t i = first; i < last; ++i) room += root[i] * root[i] * Row::room(y[i], slope_[i], !down);
        move = room > 0.0 ? sum / room : 0.0;
    }
    for (index_t i = first; i < last; ++i) {
        z_[i] += b;
        loss_ += root[i] * root[i] * Row::value(y[i], z_[i], power_[i]);
        slope_[i] -= move != 0.0 ? move * Row::room(y[i], slope_[i], !down) : 0.0;
        residual_[i] = root[i] * slope_[i];
    }
    return true;
}

// The loss at the rows w_, whose list is live_, from the intercepts b_ as a guess.
bool SmoothPath::evaluate() {
    const index_t tasks = p_.tasks, count = index_t(live_.size()), wide = index_t(play_.size());
    const bool together = p_.shared && wide > 0;  // what is live is in play
    std::vector<const double *> columns(count);
    std::vector<double> own(together ? wide * tasks : count);
    loss_ = 0.0;
    if (together) {
        for (index_t k = 0; k < wide; ++k)
            for (index_t t = 0; t < tasks; ++t) own[t * wide + k] = w_[play_[k] * tasks + t];
        gemm('N', 'N', p_.rows, tasks, wide, packed_.get(), p_.rows, own.data(), wide, 0.0, z_.data(), p_.rows);
    }
    for (index_t t = 0; t < tasks; ++t) {
        const index_t first = p_.offsets[t], n = p_.offsets[t + 1] - first;
        double *z = z_.data() + first;
        if (!together) {
            for (index_t k = 0; k < count; ++k) {
                columns[k] = column(live_[k], t);
                own[k] = w_[live_[k] * tasks + t];
            }
            std::fill(z, z + n, 0.0);
            add_columns(columns.data(), own.data(), count, n, z);
        }
        if (has_weights_)
            for (index_t i = 0; i < n; ++i) z[i] *= inverse_root_[first + i];
        if (p_.offset)
            for (index_t i = 0; i < n; ++i) z[i] += p_.offset[first + i];
        const bool found = p_.loss == SmoothLoss::logistic ? evaluate_task<LogisticRow>(t) : evaluate_task<PoissonRow>(t);
        if (!found) return false;
    }
    work_ += double(samples_) * double(count + 40);
    return std::isfinite(loss_);
}

// X'residual and its gauges, of features in play or of all.
void SmoothPath::correlate(bool everything) {
    const index_t tasks = p_.tasks, count = everything ? p_.features : index_t(play_.size());
    std::vector<double> out(p_.shared ? count * tasks : count);
    const auto feature = [&](index_t k) { return everything ? k : play_[k]; };
    if (p_.shared && count > 0)
        gemm('T', 'N', count, tasks, p_.rows, everything ? p_.x : packed_.get(), p_.rows, residual_.data(), p_.rows, 0.0,
             out.data(), count);
    std::vector<const double *> columns(p_.shared ? 0 : count);
    for (index_t t = 0; t < tasks; ++t) {
        double *own = out.data() + (p_.shared ? t * count : 0);
        if (!p_.shared) {
            const index_t first = p_.offsets[t];
            for (index_t k = 0; k < count; ++k) columns[k] = column(feature(k), t);
            products(columns.data(), count, residual_.data() + first, p_.offsets[t + 1] - first, own);
        }
        for (index_t k = 0; k < count; ++k) c_[feature(k) * tasks + t] = own[k];
    }
    for (index_t k = 0; k < count; ++k) {
        const index_t j = feature(k);
        gauges_[j] = row_gauge_inline(c_.data() + j * tasks, tasks, p_.group[j], p_.l1[j], p_.positive);
    }
    work_ += double(samples_) * double(count);
}

double SmoothPath::norm(double lam) const {
    double total = 0.0;
    for (const index_t j : live_) {
        double squares = 0.0, sum = 0.0;
        for (index_t t = 0; t < p_.tasks; ++t) {
            const double v = w_[j * p_.tasks + t];
            squares += v * v;
            sum += std::fabs(v);
        }
        total += p_.group[j] * std::sqrt(squares) + p_.l1[j] * sum;
    }
    return lam * total;
}

template <class Row> double SmoothPath::excess(double scale) const {
    double total = 0.0;
    for (index_t i = 0; i < samples_; ++i) {
        const double s = p_.root[i] * p_.root[i];
        if (s > 0.0) total += s * std::max(Row::excess(p_.labels[i], z_[i], power_[i], scale * slope_[i]), 0.0);
    }
    return total;
}

// The duality gap with the scaled slopes as dual point, of the problem on the features in play or on all; where a part of
// it is above the goal, that part.
double SmoothPath::gap(double lam, bool everything, double goal) const {
    double polar = 0.0, inner = 0.0;
    if (everything)
        polar = *std::max_element(gauges_.begin(), gauges_.end());
    else
        for (const index_t j : play_) polar = std::max(polar, gauges_[j]);
    for (const index_t j : live_)
        for (index_t t = 0; t < p_.tasks; ++t) inner += w_[j * p_.tasks + t] * c_[j * p_.tasks + t];
    const double scale = polar > lam ? lam / polar : 1.0, least = std::max(norm(lam) - scale * inner, 0.0);
    if (least > goal) return least;
    const double rows = p_.loss == SmoothLoss::logistic ? excess<LogisticRow>(scale) : excess<PoissonRow>(scale);
    return rows + least;
}

// More features in play: their products with all in play under the weights of the model.
void SmoothPath::join(const std::vector<index_t> &some) {
    const index_t old = index_t(play_.size()), fresh = std::min(index_t(some.size()), room_ - old), tasks = p_.tasks;
    const index_t count = old + fresh;
    if (fresh <= 0) return;
    for (index_t k = old; k < count; ++k) {
        play_.push_back(some[k - old]);
        place_[some[k - old]] = k;
    }
    for (index_t t = 0; t < tasks; ++t) {
        const index_t first = p_.offsets[t], n = p_.offsets[t + 1] - first;
        const double *second = second_.data() + first, *root = p_.root + first;
        double *columns = packed_.get() + (p_.shared ? 0 : first * room_), *gram = gram_.data() + t * room_ * stride_;
        weighted_.resize(std::max(index_t(weighted_.size()), n * fresh));
        for (index_t k = old; k < count; ++k) {
            const double *own = column(play_[k], t);
            double *weighted = weighted_.data() + (k - old) * n, beside = 0.0;
            if (!p_.shared || t == 0) std::copy(own, own + n, columns + k * n);
            for (index_t i = 0; i < n; ++i) {
                weighted[i] = second[i] * own[i];
                beside += weighted[i] * root[i];
            }
            beside_[k * tasks + t] = beside;
        }
        gemm('T', 'N', count, fresh, n, columns, n, weighted_.data(), n, 0.0, gram + old * stride_, stride_);
        for (index_t k = old; k < count; ++k) {
            const double raw = gram[k * stride_ + k];
            const double per = p_.intercept && total_[t] > 0.0 ? beside_[k * tasks + t] / total_[t] : 0.0;
            for (index_t l = 0; l <= k; ++l) {
                const double value = gram[k * stride_ + l] - per * beside_[l * tasks + t];
                gram[k * stride_ + l] = gram[l * stride_ + k] = value;
            }
            const double left = gram[k * stride_ + k];
            diagonal_[k * tasks + t] = left > resolved * raw ? left : 0.0;
        }
    }
    work_ += double(samples_) * double(count) * double(fresh);
}

// A new model: the second derivatives of this point, and the features that may come to be not zero.
void SmoothPath::refresh(double threshold) {
    for (const index_t j : play_) place_[j] = -1;
    play_.clear();
    second_ = curvature_;
    for (index_t t = 0; t < p_.tasks; ++t) {
        double total = 0.0;
        for (index_t i = p_.offsets[t]; i < p_.offsets[t + 1]; ++i) total += p_.root[i] * p_.root[i] * second_[i];
        total_[t] = total;
    }
    has_second_ = true;
    promising(threshold);
}

// Live features, and those whose gauges, as they were last seen, are above a threshold, are in play.
void SmoothPath::promising(double threshold) {
    std::vector<index_t> some;
    for (const index_t j : live_)
        if (place_[j] < 0) some.push_back(j);
    for (index_t j = 0; j < p_.features; ++j) {
        const bool live = std::any_of(w_.begin() + j * p_.tasks, w_.begin() + (j + 1) * p_.tasks, [](double v) { return v != 0.0; });
        if (place_[j] < 0 && !live && gauges_[j] > threshold) some.push_back(j);
    }
    join(some);
}

// Of v_, what the norm and the scale of the dual point add to the gap of the model: nearly all of it.
double SmoothPath::model_gap(double lam) const {
    const index_t tasks = p_.tasks;
    double norms = 0.0, inner = 0.0, polar = 0.0;
    std::vector<double> c(tasks);
    for (index_t k = 0; k < index_t(play_.size()); ++k) {
        const index_t j = play_[k];
        double squares = 0.0, sum = 0.0;
        for (index_t t = 0; t < tasks; ++t) {
            const double v = v_[k * tasks + t];
            c[t] = g_[t * stride_ + k];
            squares += v * v;
            sum += std::fabs(v);
            inner += v * c[t];
        }
        norms += p_.group[j] * std::sqrt(squares) + p_.l1[j] * sum;
        polar = std::max(polar, row_gauge_inline(c.data(), tasks, p_.group[j], p_.l1[j], p_.positive));
    }
    return std::max(lam * norms - (polar > lam ? lam / polar : 1.0) * inner, 0.0);
}

// Coordinate descent on the model around the point: v_ becomes its solution, g_ what is left of X'residual there.
index_t SmoothPath::descend(double lam, double tol, index_t most) {
    const index_t tasks = p_.tasks, count = index_t(play_.size());
    for (index_t k = 0; k < count; ++k)
        for (index_t t = 0; t < tasks; ++t) {
            v_[k * tasks + t] = w_[play_[k] * tasks + t];
            g_[t * stride_ + k] = c_[play_[k] * tasks + t];
        }
    std::vector<double> c(tasks), next(tasks);
    index_t epochs = 0;
    while (epochs < most) {
        ++epochs;
        double gained = 0.0;
        for (index_t k = 0; k < count; ++k) {
            const double group = lam * p_.group[play_[k]], l1 = lam * p_.l1[play_[k]];
            const double *h = diagonal_.data() + k * tasks;
            double *v = v_.data() + k * tasks, squares = 0.0;
            bool live = false;
            for (index_t t = 0; t < tasks; ++t) {
                c[t] = h[t] > 0.0 ? g_[t * stride_ + k] + h[t] * v[t] : 0.0;
                squares += c[t] * c[t];
                live = live || v[t] != 0.0;
            }
            if (!live && l1 == 0.0 && squares <= group * group) continue;
            solve_row_inline(c.data(), h, tasks, group, l1, 0.0, p_.positive, next.data());
            for (index_t t = 0; t < tasks; ++t) {
                const double delta = next[t] - v[t];
                if (delta == 0.0) continue;
                gained += h[t] * delta * delta;
                v[t] = next[t];
                subtract_multiple(delta, gram_.data() + (t * room_ + k) * stride_, count, g_.data() + t * stride_);
            }
        }
        if (gained == 0.0 || model_gap(lam) <= tol) break;
    }
    work_ += double(epochs) * double(count) * double(tasks) * double(count);
    return epochs;
}

// The secant of the last two solutions, linear in lam; what would change its sign is zero.
void SmoothPath::extrapolate(double lam) {
    if (older_w_.empty() || !(older_lam_ > lam_)) return;
    const index_t tasks = p_.tasks;
    const double theta = (lam - lam_) / (lam_ - older_lam_);
    for (const index_t j : live_) {
        double *w = w_.data() + j * tasks, along = 0.0;
        const double *now = before_w_.data() + j * tasks, *old = older_w_.data() + j * tasks;
        for (index_t t = 0; t < tasks; ++t) {
            w[t] = now[t] + theta * (now[t] - old[t]);
            if (p_.l1[j] > 0.0 || p_.positive) w[t] = w[t] * now[t] > 0.0 ? w[t] : 0.0;
            along += w[t] * now[t];
        }
        if (!(along > 0.0)) std::fill(w, w + tasks, 0.0);
    }
    if (p_.intercept)
        for (index_t t = 0; t < tasks; ++t) b_[t] = before_b_[t] + theta * (before_b_[t] - older_b_[t]);
    list_live();
}

SmoothStop SmoothPath::solve(double lam, double goal, index_t max_epochs, SmoothValue &value) {
    const index_t tasks = p_.tasks;
    if (!known_) {  // W = 0
        if (!evaluate()) return SmoothStop::stuck;
        correlate(true);
        known_ = true;
        lam_ = *std::max_element(gauges_.begin(), gauges_.end());
        before_w_ = w_;
        before_b_ = b_;
    } else {
        extrapolate(lam);
        if (!evaluate()) {
            w_ = before_w_;
            b_ = before_b_;
            list_live();
            if (!evaluate()) return SmoothStop::stuck;
        }
    }
    const double threshold = strong * (2.0 * lam - std::min(lam_, 2.0 * lam));
    double inner = goal, last = INFINITY, objective = loss_ + norm(lam);
    bool anew = !has_second_;
    if (!anew) promising(threshold);
    std::vector<double> from;
    for (index_t models = 0;; ++models) {
        if (anew) {
            refresh(threshold);
            anew = false;
        }
        if (crowded()) return SmoothStop::crowded;
        correlate(false);
        double found = gap(lam, false, inner);
        while (found <= inner) {
            correlate(true);
            found = gap(lam, true, goal);
            if (found <= goal) {
                value.gap = found;
                return SmoothStop::done;
            }
            const std::size_t before = play_.size();
            promising(lam);  // those that break their bound
            if (play_.size() > before) break;
            inner = std::min(0.2 * inner, 0.5 * found);
        }
        if (models == most_models || value.epochs >= max_epochs || !(inner > 1e-16 * std::fabs(objective)))
            return SmoothStop::stuck;
        // Where a model costs no more than the loss itself it is always the present one.
        const double size = double(play_.size());
        if (models > 0 && (found > faithful * last || size * size <= 8.0 * (size + 20.0))) {
            refresh(threshold);
            correlate(false);
        }
        if (crowded()) return SmoothStop::crowded;
        last = found;
        const double tol = std::max(goal_share * inner, share * found);
        value.epochs += descend(lam, tol, std::min(most_epochs, max_epochs - value.epochs));
        from = w_;
        const std::vector<double> level = b_;
        std::vector<double> move(tasks, 0.0);
        for (std::size_t k = 0; k < play_.size(); ++k)
            for (index_t t = 0; t < tasks; ++t)
                move[t] += beside_[k * tasks + t] * (v_[k * tasks + t] - w_[play_[k] * tasks + t]);
        double step = 1.0;
        const double slack = 1e-15 * std::fabs(objective) + std::min(rise * found, noise * std::fabs(objective));
        for (int halved = 0;; ++halved) {
            if (halved == 30) return SmoothStop::stuck;
            for (std::size_t k = 0; k < play_.size(); ++k)
                for (index_t t = 0; t < tasks; ++t) {
                    const index_t at = play_[k] * tasks + t;
                    const double target = v_[k * tasks + t];
                    w_[at] = step == 1.0 ? target : from[at] + step * (target - from[at]);
                }
            for (index_t t = 0; t < tasks; ++t)
                b_[t] = level[t] - (p_.intercept && total_[t] > 0.0 ? step * move[t] / total_[t] : 0.0);
            list_live();
            if (evaluate()) {
                const double total = loss_ + norm(lam);
                if (total <= objective + slack) {
                    objective = total;
                    break;
                }
            }
            step *= 0.5;
        }
        if (step < 1.0) last = 0.0;  // the model does not hold here: the next one is new
    }
}

SmoothStop SmoothPath::advance(const double *lams, const double *goals, index_t count, index_t max_epochs,
                               double budget) {
    values.clear();
    features.clear();
    rows.clear();
    levels.clear();
    work_ = 0.0;
    for (index_t v = 0; v < count; ++v) {
        if (v > 0 && work_ > budget) return SmoothStop::paused;
        const auto began = std::chrono::steady_clock::now();
        SmoothValue value;
        const SmoothStop stop = solve(lams[v], goals[v], max_epochs, value);
        if (stop != SmoothStop::done) return stop;
        older_w_ = before_w_;
        older_b_ = before_b_;
        older_lam_ = lam_;
        before_w_ = w_;
        before_b_ = b_;
        lam_ = lams[v];
        value.count = index_t(live_.size());
        for (const index_t j : live_) {
            features.push_back(j);
            rows.insert(rows.end(), w_.begin() + j * p_.tasks, w_.begin() + (j + 1) * p_.tasks);
        }
        levels.insert(levels.end(), b_.begin(), b_.end());
        value.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        values.push_back(value);
    }
    return SmoothStop::done;
}

}  // namespace tasksieve
