// With S the gradient sums, U = S_q / t_q (rule "per-task") or S / t (others) the mean gradients, and
// k = alpha + gamma rho / sqrt(t) (rho > 0: enhanced RDA), the next weights are
//
//     W_j = -eta (1 - k / ||V_j||)_+ V_j,   V_j = U_j (l21) or soft(U_j, k r_j) (l1+l21);   W = -eta soft(U, k) (l11),
//
// eta = 1 / (ridge + gamma / sqrt(t)): equations (9) to (12) of the paper with the ridge and the enhancement.
//
// `sizes` holds ||V_j||^2 where it can be kept up to date in O(1) per touched entry:
//   - global t, l21: ||S_j||^2, for dense and sparse rows alike;
//   - per-task means, dense rows: ||V_j||^2, since only the entries of the row's own task move.
// It is computed anew now and then, at steps that depend on the step count alone: chunks change nothing.
//
// Sparse rows otherwise: t_q moves for features that no row touches, but it only grows, so a ||V_j||^2 of the past is
// an upper bound of today's (if k does not move inside V). `bounds` keeps one, in O(1) per touched entry. A feature whose bound is at most k^2 is out of the model; the norms
// of the others are computed, in O(T). The bounds decide nothing but what need not be computed: results do not depend
// on them.
#include "dual_averaging.hpp"

#include <cstring>
#include <limits>

namespace tasksieve {

namespace {

constexpr index_t kRefresh = 512;         // dense rows
constexpr index_t kSparseRefresh = 1 << 17;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A bound in single precision, which halves the memory that every row looks into: larger by more than all rounding.
TASKSIEVE_INLINE float enlarged(double norm) { return float(norm * (1.0 + 1e-6) + 1e-37); }

TASKSIEVE_INLINE double soft(double u, double threshold) {
    // u - clip(u, -threshold, threshold): no branch, and no library function, which the clones could not inline
    const double low = u < -threshold ? -threshold : u;
    return u - (low > threshold ? threshold : low);
}

// 1 / sqrt(s) for normal s > 0, to the last bit or two: from the exponent's half by four Newton steps, which fill the
// processor's vectors where its square root and its division stand in line.
TASKSIEVE_INLINE double inverse_root(double s) {
    std::uint64_t bits;
    std::memcpy(&bits, &s, sizeof bits);
    bits = 0x5fe6eb50c7b537a9ULL - (bits >> 1);
    double r;
    std::memcpy(&r, &bits, sizeof r);
    const double half = 0.5 * s;
    r *= 1.5 - (half * r) * r;
    r *= 1.5 - (half * r) * r;
    r *= 1.5 - (half * r) * r;
    r *= 1.5 - (half * r) * r;
    return r;
}

// (1 - k / sqrt(size))_+
TASKSIEVE_INLINE double shrink(double size, double k) {
    const double factor = 1.0 - k * inverse_root(size > 1e-300 ? size : 1e-300);
    return size > k * k && !(factor < 0.0) ? factor : 0.0;
}

// --- dense rows: everything contiguous over the features, in whole blocks of 8 -------------------------------------------------------

TASKSIEVE_MULTIVERSION
double dot_group(const double *x, const double *s, const double *size, double k, index_t n) {
    double sum = 0.0;
    for (index_t j = 0; j < n / 8 * 8; ++j) sum += x[j] * s[j] * shrink(size[j], k);
    return sum;
}

TASKSIEVE_MULTIVERSION
double dot_soft_group(const double *x, const double *s, const double *size, const double *r, double k, double mean,
                      index_t n) {
    double sum = 0.0;
    for (index_t j = 0; j < n / 8 * 8; ++j) sum += x[j] * soft(s[j] * mean, k * r[j]) * shrink(size[j], k);
    return sum;
}

TASKSIEVE_MULTIVERSION
double dot_soft(const double *x, const double *s, double k, double mean, index_t n) {
    double sum = 0.0;
    for (index_t j = 0; j < n / 8 * 8; ++j) sum += x[j] * soft(s[j] * mean, k);
    return sum;
}

TASKSIEVE_MULTIVERSION
void add_plain(const double *x, double g, double *s, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) s[j] += g * x[j];
}

// the same, keeping ||S_j||^2
TASKSIEVE_MULTIVERSION
void add_with_sum_sizes(const double *x, double g, double *s, double *size, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) {
        const double d = g * x[j];
        size[j] += d * (2.0 * s[j] + d);
        s[j] += d;
    }
}

// the same, keeping ||U_j||^2
TASKSIEVE_MULTIVERSION
void add_with_mean_sizes(const double *x, double g, double before, double after, double *s, double *size,
                         index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) {
        const double old_mean = s[j] * before;
        s[j] += g * x[j];
        const double new_mean = s[j] * after;
        size[j] += (new_mean - old_mean) * (new_mean + old_mean);
    }
}

// the same, keeping ||soft(U_j, k r_j)||^2
TASKSIEVE_MULTIVERSION
void add_with_soft_sizes(const double *x, double g, double before, double after, const double *r, double k,
                         double *s, double *size, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) {
        const double old_mean = soft(s[j] * before, k * r[j]);
        s[j] += g * x[j];
        const double new_mean = soft(s[j] * after, k * r[j]);
        size[j] += (new_mean - old_mean) * (new_mean + old_mean);
    }
}

TASKSIEVE_MULTIVERSION
void add_squares(const double *s, double mean, double *size, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) size[j] += (s[j] * mean) * (s[j] * mean);
}

TASKSIEVE_MULTIVERSION
void add_soft_squares(const double *s, double mean, const double *r, double k, double *size, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) {
        const double v = soft(s[j] * mean, k * r[j]);
        size[j] += v * v;
    }
}

TASKSIEVE_MULTIVERSION
void shrink_all(const double *size, double k, double *factor, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) factor[j] = shrink(size[j], k);
}

TASKSIEVE_MULTIVERSION
void subtract_scaled(const double *s, const double *factor, double scale, double *out, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) out[j] -= scale * s[j] * factor[j];
}

TASKSIEVE_MULTIVERSION
void subtract_soft(const double *s, double eta, double mean, double k, double *out, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) out[j] -= eta * soft(s[j] * mean, k);
}

TASKSIEVE_MULTIVERSION
void subtract_soft_scaled(const double *s, const double *factor, const double *r, double eta, double mean, double k,
                          double *out, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n / 8 * 8; ++j) out[j] -= eta * soft(s[j] * mean, k * r[j]) * factor[j];
}

// --- sparse rows: a feature's entries of all tasks side by side ------------------------------------------------

// Four sums side by side fill a vector; the room for a feature's tasks is a multiple of four, and 0 where there is none.
TASKSIEVE_INLINE double soft_square_sum(const double *s, const double *mean, double threshold, index_t room) {
    double sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
    for (index_t q = 0; q < room; q += 4) {
        const double u0 = soft(s[q] * mean[q], threshold), u1 = soft(s[q + 1] * mean[q + 1], threshold);
        const double u2 = soft(s[q + 2] * mean[q + 2], threshold), u3 = soft(s[q + 3] * mean[q + 3], threshold);
        sum0 += u0 * u0;
        sum1 += u1 * u1;
        sum2 += u2 * u2;
        sum3 += u3 * u3;
    }
    return (sum0 + sum1) + (sum2 + sum3);
}

// ||U_j||^2 and the entry of one task, for the features of a list
TASKSIEVE_MULTIVERSION
void gather_squares(const double *sums, index_t room, const index_t *feature, index_t count, index_t task,
                    const double *mean, double *sizes, double *means) {
    for (index_t k = 0; k < count; ++k) {
        const double *s = sums + feature[k] * room;
        sizes[k] = soft_square_sum(s, mean, 0.0, room);
        means[k] = s[task] * mean[task];
    }
}

// the same of soft(U_j, k r_j)
TASKSIEVE_MULTIVERSION
void gather_soft_squares(const double *sums, index_t room, const index_t *feature, index_t count, index_t task,
                         const double *mean, const double *r, bool uniform, double k_now, double *sizes,
                         double *means) {
    for (index_t k = 0; k < count; ++k) {
        const double *s = sums + feature[k] * room;
        const double threshold = k_now * r[uniform ? 0 : feature[k]];
        sizes[k] = soft_square_sum(s, mean, threshold, room);
        means[k] = soft(s[task] * mean[task], threshold);
    }
}

// Whether any exponent is the one of NaN and infinity, told by integers: no arithmetic mode matters.
TASKSIEVE_MULTIVERSION
bool all_finite_values(const double *values, index_t count) {
    constexpr std::uint64_t exponent = 0x7ff0000000000000ULL;
    std::uint64_t bad = 0;
    for (index_t i = 0; i < count; ++i) {
        std::uint64_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        bad |= std::uint64_t((bits & exponent) == exponent);
    }
    return bad == 0;
}

double derivative(OnlineLoss loss, double z, double y) {
    switch (loss) {
        case OnlineLoss::squared: return z - y;
        case OnlineLoss::logistic: {
            const double margin = y * z;  // -y / (1 + exp(margin)), without overflow
            return margin > 0.0 ? -y * std::exp(-margin) / (1.0 + std::exp(-margin)) : -y / (1.0 + std::exp(margin));
        }
        default: return y * z < 1.0 ? -y : 0.0;
    }
}

index_t padded(index_t tasks) { return (std::max<index_t>(tasks, 1) + 3) / 4 * 4; }

}  // namespace

bool all_finite(const double *values, index_t count) { return all_finite_values(values, count); }

double DualAveraging::threshold() const {
    const double t = double(std::max<index_t>(steps, 1));
    return settings.alpha + settings.enhanced * settings.gamma / std::sqrt(t);
}

double DualAveraging::step_size() const {
    const double t = double(std::max<index_t>(steps, 1));
    return 1.0 / (settings.ridge + settings.gamma / std::sqrt(t));
}

// Whether ||V_j|| changes for features that no row touches, even in dense rows.
bool DualAveraging::moving() const {
    return settings.penalty == OnlinePenalty::l1_l21 && (global() || settings.enhanced != 0.0);
}

// Whether ||V_j|| can only fall while no row touches feature j.
bool DualAveraging::bounded() const {
    return settings.penalty == OnlinePenalty::l21 || settings.enhanced == 0.0;
}

void DualAveraging::forget_norms() {
    sizes_ready = false;
    std::fill(bounds.begin(), bounds.end(), kInfinity);
}

double DualAveraging::mean_factor(index_t task) const {
    if (!global()) return inverse[task];
    return steps > 0 ? 1.0 / double(steps) : 0.0;
}

// Intercepts are neither penalised nor shrunk by the ridge.
double DualAveraging::offset(index_t task, double mean, double eta) const {
    if (!settings.intercept) return 0.0;
    const double scale = settings.gamma > 0.0 ? std::sqrt(double(steps)) / settings.gamma : eta;
    return -scale * offset_sums[task] * mean;
}

void DualAveraging::resize(index_t new_features, index_t new_tasks) {
    if (new_features == features && new_tasks == tasks) return;
    new_features = std::max(new_features, features);
    new_tasks = std::max(new_tasks, tasks);
    const index_t new_width = padded_width(new_features);
    auto grow = [&](Cells &cells) {
        if (task_major) {
            if (new_width != width) {
                Cells moved(new_tasks * new_width, 0.0);
                for (index_t q = 0; q < tasks; ++q)
                    std::copy_n(cells.data() + q * width, features, moved.data() + q * new_width);
                cells.swap(moved);
            } else {
                cells.resize(new_tasks * new_width, 0.0);
            }
        } else {
            const index_t wanted = padded(new_tasks);
            if (wanted > capacity) {
                // room to grow: many tasks may join one by one
                const index_t room = capacity >= 32 ? padded(std::max(wanted, capacity + capacity / 2)) : wanted;
                Cells moved(new_features * room, 0.0);
                for (index_t j = 0; j < features; ++j)
                    std::copy_n(cells.data() + j * capacity, tasks, moved.data() + j * room);
                cells.swap(moved);
            } else {
                cells.resize(new_features * capacity, 0.0);
            }
        }
    };
    if (settings.average) grow(total);
    grow(sums);
    if (!task_major && padded(new_tasks) > capacity)
        capacity = capacity >= 32 ? padded(std::max(padded(new_tasks), capacity + capacity / 2)) : padded(new_tasks);
    sizes.resize(new_width, 0.0);
    bounds.resize(new_width, kInfinity);
    l1.resize(new_width, l1_default);
    std::fill(l1.begin() + features, l1.end(), l1_default);
    weight.resize(new_tasks, 0.0);
    inverse.resize(std::max<index_t>(padded(new_tasks), capacity), 0.0);
    offset_sums.resize(new_tasks, 0.0);
    offset_total.resize(new_tasks, 0.0);
    in_round.resize(new_tasks, 0);
    features = new_features;
    width = new_width;
    tasks = new_tasks;
}

void DualAveraging::set_layout(bool wanted_task_major) {
    if (wanted_task_major == task_major) return;
    if (!wanted_task_major) capacity = padded(tasks);
    auto turn = [&](Cells &cells) {
        Cells turned(wanted_task_major ? tasks * width : features * capacity, 0.0);
        for (index_t q = 0; q < tasks; ++q)
            for (index_t j = 0; j < features; ++j) {
                if (wanted_task_major)
                    turned[q * width + j] = cells[j * capacity + q];
                else
                    turned[j * capacity + q] = cells[q * width + j];
            }
        cells.swap(turned);
    };
    if (settings.average) turn(total);
    turn(sums);
    if (wanted_task_major) capacity = 0;
    inverse.resize(std::max<index_t>(padded(tasks), capacity), 0.0);
    task_major = wanted_task_major;
    std::fill(bounds.begin(), bounds.end(), kInfinity);
    if (!global()) sizes_ready = false;
}

void DualAveraging::flip(index_t task) {
    auto negate = [&](Cells &cells) {
        for (index_t j = 0; j < features; ++j) {
            double &cell = task_major ? cells[task * width + j] : cells[j * capacity + task];
            cell = -cell;
        }
    };
    negate(sums);
    if (settings.average) negate(total);
    offset_sums[task] = -offset_sums[task];
    offset_total[task] = -offset_total[task];
    for (size_t k = 0; k < round_task.size(); ++k)
        if (round_task[k] == task) round_gradient[k] = -round_gradient[k];
}

void DualAveraging::refresh_sizes() {
    const bool sums_only = norms_kept();
    const bool softened = settings.penalty == OnlinePenalty::l1_l21;
    const double k = threshold();
    std::fill(sizes.begin(), sizes.end(), 0.0);
    if (task_major) {
        for (index_t q = 0; q < tasks; ++q) {
            const double mean = sums_only ? 1.0 : mean_factor(q);
            if (softened)
                add_soft_squares(sums.data() + q * width, mean, l1.data(), k, sizes.data(), width);
            else
                add_squares(sums.data() + q * width, mean, sizes.data(), width);
        }
    } else {
        for (index_t j = 0; j < features; ++j)
            for (index_t q = 0; q < tasks; ++q) {
                const double u = sums[j * capacity + q] * (sums_only ? 1.0 : mean_factor(q));
                const double v = softened ? soft(u, k * l1[j]) : u;
                sizes[j] += v * v;
            }
    }
    sizes_ready = true;
}

const double *DualAveraging::padded_row(const double *x) {
    if (width == features) return x;
    row_.resize(width);
    std::copy_n(x, features, row_.data());
    std::fill(row_.begin() + features, row_.end(), 0.0);
    return row_.data();
}

double DualAveraging::score_dense(const double *x, index_t task) {
    if (steps == 0) return 0.0;
    const double k = threshold(), eta = step_size(), mean = mean_factor(task);
    const double start = offset(task, mean, eta);
    const double *s = sums.data() + task * width;
    if (settings.penalty == OnlinePenalty::l11) return start - eta * dot_soft(x, s, k, mean, width);
    if (!sizes_ready) refresh_sizes();
    if (settings.penalty == OnlinePenalty::l1_l21)
        return start - eta * dot_soft_group(x, s, sizes.data(), l1.data(), k, mean, width);
    return start - eta * mean * dot_group(x, s, sizes.data(), norms_kept() ? k * double(steps) : k, width);
}

// Lists the features of a row whose squared norm, or its bound, is above a limit, and their values: most rows of sparse
// data meet few features that are in the model.
template <class I, class Norm>
index_t DualAveraging::keep_above(const OnlineRow<I> &row, const Norm *norms, double limit) {
    index_t kept = 0, *feature = row_kept_.data();
    double *value = row_values_.data();
    for (index_t i = 0; i < row.count; ++i) {
        const index_t j = row.index[i];
        feature[kept] = j;
        value[kept] = row.value[i];
        kept += norms[j] > limit;
    }
    return kept;
}

template <class I>
double DualAveraging::score_sparse(const OnlineRow<I> &row, index_t task) {
    if (steps == 0) return 0.0;
    const double k = threshold(), eta = step_size(), mean = mean_factor(task);
    const double start = offset(task, mean, eta);
    const index_t count = row.count;
    if (settings.penalty == OnlinePenalty::l11) {
        double sum = 0.0;
        for (index_t i = 0; i < count; ++i)
            sum += row.value[i] * soft(sums[index_t(row.index[i]) * capacity + task] * mean, k);
        return start - eta * sum;
    }
    if (index_t(row_kept_.size()) < count + 8) {
        row_kept_.resize(count + 8);
        for (auto *buffer : {&row_values_, &row_sizes_, &row_means_}) buffer->resize(count + 8);
    }
    index_t *feature = row_kept_.data();
    double *value = row_values_.data(), *size = row_sizes_.data(), *entry = row_means_.data();
    const double k_now = norms_kept() ? k * double(steps) : k, limit = k_now * k_now;
    if (norms_kept() && !sizes_ready) refresh_sizes();
    index_t kept;
    if (norms_kept())
        kept = keep_above(row, sizes.data(), limit);
    else
        kept = keep_above(row, bounds.data(), limit);
    if (norms_kept()) {
        for (index_t i = 0; i < kept; ++i) {
            size[i] = sizes[feature[i]];
            entry[i] = sums[feature[i] * capacity + task] * mean;
        }
    } else {
        if (global()) std::fill(inverse.begin(), inverse.begin() + tasks, mean);
        if (settings.penalty == OnlinePenalty::l21)
            gather_squares(sums.data(), capacity, feature, kept, task, inverse.data(), size, entry);
        else
            gather_soft_squares(sums.data(), capacity, feature, kept, task, inverse.data(), l1.data(), l1_uniform, k,
                                size, entry);
        index_t above = 0;
        for (index_t i = 0; i < kept; ++i) {
            bounds[feature[i]] = bounded() ? enlarged(size[i]) : kInfinity;
            value[above] = value[i];
            entry[above] = entry[i];
            size[above] = size[i];
            above += size[i] > limit;
        }
        kept = above;
    }
    if (kept == 0) return start;
    const index_t whole = (kept + 7) / 8 * 8;
    for (index_t i = kept; i < whole; ++i) value[i] = entry[i] = size[i] = 0.0;
    return start - eta * dot_group(value, entry, size, k_now, whole);
}

template <class I>
double DualAveraging::score(const OnlineRow<I> &row, index_t task) {
    return row.index ? score_sparse(row, task) : score_dense(padded_row(row.value), task);
}

void DualAveraging::add_dense(const double *x, double gradient, index_t task, double old_inverse, double new_inverse) {
    offset_sums[task] += gradient;
    double *s = sums.data() + task * width;
    if (norms_kept() && sizes_ready) {
        add_with_sum_sizes(x, gradient, s, sizes.data(), width);
    } else if (!global() && sizes_ready && settings.penalty == OnlinePenalty::l21) {
        add_with_mean_sizes(x, gradient, old_inverse, new_inverse, s, sizes.data(), width);
    } else if (!global() && sizes_ready && settings.penalty == OnlinePenalty::l1_l21 && !moving()) {
        add_with_soft_sizes(x, gradient, old_inverse, new_inverse, l1.data(), threshold(), s, sizes.data(), width);
    } else {
        add_plain(x, gradient, s, width);
        sizes_ready = false;
    }
}

// `new_mean`: what the task's sum is to be multiplied by after this step.
template <class I>
void DualAveraging::add_sparse(const OnlineRow<I> &row, double gradient, index_t task, double new_mean) {
    offset_sums[task] += gradient;
    const index_t stride = task_major ? 1 : capacity, count = row.count;
    double *s = sums.data() + (task_major ? task * width : task);
    if (norms_kept() && sizes_ready) {
        double *size = sizes.data();
        for (index_t i = 0; i < count; ++i) {
            const double d = gradient * row.value[i];
            double &cell = s[index_t(row.index[i]) * stride];
            size[row.index[i]] += d * (2.0 * cell + d);
            cell += d;
        }
        return;
    }
    sizes_ready = false;
    if (settings.penalty == OnlinePenalty::l11 || norms_kept() || !bounded()) {
        for (index_t i = 0; i < count; ++i) s[index_t(row.index[i]) * stride] += gradient * row.value[i];
        return;
    }
    float *bound = bounds.data();
    const bool softened = settings.penalty == OnlinePenalty::l1_l21;
    const double k = threshold();
    for (index_t i = 0; i < count; ++i) {
        const index_t j = row.index[i];
        double &cell = s[j * stride];
        const double old_cell = cell, new_cell = old_cell + gradient * row.value[i];
        double before = old_cell * new_mean, after = new_cell * new_mean;
        if (softened) {
            const double inner = k * l1[l1_uniform ? 0 : j];
            before = soft(before, inner);
            after = soft(after, inner);
        }
        const double square = after * after;
        bound[j] = enlarged(double(bound[j]) + (square - before * before));
        cell = new_cell;
    }
}

// Adds W, the iterate at which the next gradient is taken, to the sum of iterates.
void DualAveraging::add_iterate() {
    if (steps == 0) return;
    if (settings.penalty != OnlinePenalty::l11 && !sizes_ready) refresh_sizes();
    const bool sums_only = norms_kept();
    const double k = threshold(), eta = step_size();
    row_sizes_.resize(std::max<size_t>(row_sizes_.size(), width));
    double *factor = row_sizes_.data();
    if (settings.penalty != OnlinePenalty::l11)
        shrink_all(sizes.data(), sums_only ? k * double(steps) : k, factor, width);
    for (index_t q = 0; q < tasks; ++q) {
        const double mean = mean_factor(q);
        offset_total[q] += offset(q, mean, eta);
        if (task_major) {
            const double *s = sums.data() + q * width;
            double *out = total.data() + q * width;
            if (settings.penalty == OnlinePenalty::l11)
                subtract_soft(s, eta, mean, k, out, width);
            else if (settings.penalty == OnlinePenalty::l21)
                subtract_scaled(s, factor, eta * mean, out, width);
            else
                subtract_soft_scaled(s, factor, l1.data(), eta, mean, k, out, width);
            continue;
        }
        const double *s = sums.data() + q;
        double *out = total.data() + q;
        for (index_t j = 0; j < features; ++j) {
            const double u = s[j * capacity] * mean;
            if (settings.penalty == OnlinePenalty::l11)
                out[j * capacity] -= eta * soft(u, k);
            else if (settings.penalty == OnlinePenalty::l21)
                out[j * capacity] -= eta * u * factor[j];
            else
                out[j * capacity] -= eta * soft(u, k * l1[j]) * factor[j];
        }
    }
}

void DualAveraging::close_round() {
    if (round_task.empty()) return;
    for (size_t k = 0; k < round_task.size(); ++k) {
        const index_t begin = round_start[k];
        const index_t end = k + 1 < round_task.size() ? round_start[k + 1] : index_t(round_index.size());
        const OnlineRow<index_t> row{round_value.data() + begin, round_index.data() + begin, end - begin};
        add_sparse(row, round_gradient[k], round_task[k], 1.0 / double(steps + 1));
        in_round[round_task[k]] = 0;
    }
    ++steps;
    round_task.clear();
    round_start.clear();
    round_gradient.clear();
    round_index.clear();
    round_value.clear();
    if (settings.penalty != OnlinePenalty::l21 || steps % kRefresh == 0) sizes_ready = false;
}

template <class I>
bool DualAveraging::learn(const OnlineRow<I> &row, double y, index_t task, double row_weight) {
    const bool by_rounds = settings.rule == MissingRule::rounds;
    if (by_rounds && in_round[task]) close_round();
    const double *dense = row.index ? nullptr : padded_row(row.value);
    const double z = dense ? score_dense(dense, task) : score_sparse(row, task);
    double gradient = row_weight * derivative(settings.loss, z, y);
    if (!std::isfinite(gradient)) return false;
    if (settings.average && (!by_rounds || round_task.empty())) add_iterate();
    ++rows;
    const double before = inverse[task];
    weight[task] += row_weight;
    if (by_rounds) {
        const index_t count = row.index ? row.count : features;
        round_task.push_back(task);
        round_gradient.push_back(gradient);
        round_start.push_back(round_index.size());
        for (index_t i = 0; i < count; ++i) {
            round_index.push_back(row.index ? index_t(row.index[i]) : i);
            round_value.push_back(row.value[i]);
        }
        in_round[task] = 1;
        return true;
    }
    const double after = 1.0 / weight[task];
    if (settings.rule == MissingRule::importance) gradient *= double(steps + 1) * after;
    if (dense)
        add_dense(dense, gradient, task, before, after);
    else
        add_sparse(row, gradient, task, global() ? 1.0 / double(steps + 1) : after);
    if (!global()) inverse[task] = after;
    ++steps;
    if (settings.penalty == OnlinePenalty::l11) return true;
    if (moving() || (row.index ? steps % kSparseRefresh == 0 : steps < 64 || steps % kRefresh == 0))
        sizes_ready = false;
    return true;
}

void DualAveraging::weights(double *out) const {
    if (!round_task.empty()) {
        DualAveraging closed = *this;
        closed.close_round();
        return closed.weights(out);
    }
    std::fill_n(out, tasks * features, 0.0);
    if (steps == 0) return;
    const double k = threshold(), eta = step_size();
    std::vector<double> v(tasks);
    for (index_t j = 0; j < features; ++j) {
        double size = 0.0;
        for (index_t q = 0; q < tasks; ++q) {
            const double u = (task_major ? sums[q * width + j] : sums[j * capacity + q]) * mean_factor(q);
            v[q] = settings.penalty == OnlinePenalty::l21 ? u
                   : soft(u, settings.penalty == OnlinePenalty::l11 ? k : k * l1[j]);
            size += v[q] * v[q];
        }
        const double factor = settings.penalty == OnlinePenalty::l11 ? 1.0 : shrink(size, k);
        if (factor == 0.0) continue;
        for (index_t q = 0; q < tasks; ++q)
            if (v[q] != 0.0) out[q * features + j] = -eta * factor * v[q];
    }
}

void DualAveraging::intercepts(double *out) const {
    if (!round_task.empty()) {
        DualAveraging closed = *this;
        closed.close_round();
        return closed.intercepts(out);
    }
    for (index_t q = 0; q < tasks; ++q) {
        out[q] = steps == 0 ? 0.0 : offset(q, mean_factor(q), step_size());
    }
}

template bool DualAveraging::learn(const OnlineRow<std::int32_t> &, double, index_t, double);
template bool DualAveraging::learn(const OnlineRow<std::int64_t> &, double, index_t, double);
template double DualAveraging::score(const OnlineRow<std::int32_t> &, index_t);
template double DualAveraging::score(const OnlineRow<std::int64_t> &, index_t);

}  // namespace tasksieve
