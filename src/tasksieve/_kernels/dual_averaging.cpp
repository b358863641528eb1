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
#include "dual_averaging.hpp"

#include <cstring>

namespace tasksieve {

namespace {

constexpr index_t kRefresh = 512;         // dense rows
constexpr index_t kSparseRefresh = 1 << 17;

TASKSIEVE_INLINE double soft(double u, double threshold) {
    // u - clip(u, -threshold, threshold): no branch, and no library function, which the clones could not inline
    const double low = u < -threshold ? -threshold : u;
    return u - (low > threshold ? threshold : low);
}

// (1 - k / sqrt(size))_+
TASKSIEVE_INLINE double shrink(double size, double k) {
    const double factor = 1.0 - k / __builtin_sqrt(size > 1e-300 ? size : 1e-300);
    return size > k * k ? factor : 0.0;
}

// --- dense rows: everything contiguous over the features -------------------------------------------------------

TASKSIEVE_MULTIVERSION
double dot_group(const double *x, const double *s, const double *size, double k, index_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t j = 0; j < n; ++j) sum += x[j] * s[j] * shrink(size[j], k);
    return sum;
}

// Whether any feature of a row is in the model: most rows of sparse data meet none, and need no square roots.
TASKSIEVE_MULTIVERSION
bool any_above(const double *size, double limit, index_t n) {
    double largest = 0.0;
#pragma omp simd reduction(max : largest)
    for (index_t j = 0; j < n; ++j) largest = size[j] > largest ? size[j] : largest;
    return largest > limit;
}

TASKSIEVE_MULTIVERSION
double dot_soft_group(const double *x, const double *s, const double *size, const double *r, double k, double mean,
                      index_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t j = 0; j < n; ++j) sum += x[j] * soft(s[j] * mean, k * r[j]) * shrink(size[j], k);
    return sum;
}

TASKSIEVE_MULTIVERSION
double dot_soft(const double *x, const double *s, double k, double mean, index_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t j = 0; j < n; ++j) sum += x[j] * soft(s[j] * mean, k);
    return sum;
}

TASKSIEVE_MULTIVERSION
void add_plain(const double *x, double g, double *s, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n; ++j) s[j] += g * x[j];
}

// the same, keeping ||S_j||^2
TASKSIEVE_MULTIVERSION
void add_with_sum_sizes(const double *x, double g, double *s, double *size, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n; ++j) {
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
    for (index_t j = 0; j < n; ++j) {
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
    for (index_t j = 0; j < n; ++j) {
        const double old_mean = soft(s[j] * before, k * r[j]);
        s[j] += g * x[j];
        const double new_mean = soft(s[j] * after, k * r[j]);
        size[j] += (new_mean - old_mean) * (new_mean + old_mean);
    }
}

TASKSIEVE_MULTIVERSION
void add_squares(const double *s, double mean, double *size, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n; ++j) size[j] += (s[j] * mean) * (s[j] * mean);
}

TASKSIEVE_MULTIVERSION
void add_soft_squares(const double *s, double mean, const double *r, double k, double *size, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n; ++j) {
        const double v = soft(s[j] * mean, k * r[j]);
        size[j] += v * v;
    }
}

TASKSIEVE_MULTIVERSION
void shrink_all(const double *size, double k, double *factor, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n; ++j) factor[j] = shrink(size[j], k);
}

TASKSIEVE_MULTIVERSION
void subtract_scaled(const double *s, const double *factor, double scale, double *out, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n; ++j) out[j] -= scale * s[j] * factor[j];
}

TASKSIEVE_MULTIVERSION
void subtract_soft(const double *s, double eta, double mean, double k, double *out, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n; ++j) out[j] -= eta * soft(s[j] * mean, k);
}

TASKSIEVE_MULTIVERSION
void subtract_soft_scaled(const double *s, const double *factor, const double *r, double eta, double mean, double k,
                          double *out, index_t n) {
#pragma omp simd
    for (index_t j = 0; j < n; ++j) out[j] -= eta * soft(s[j] * mean, k * r[j]) * factor[j];
}

// --- sparse rows: a feature's entries of all tasks side by side ------------------------------------------------

TASKSIEVE_INLINE double square_sum(const double *s, const double *mean, index_t tasks) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t q = 0; q < tasks; ++q) {
        const double u = s[q] * mean[q];
        sum += u * u;
    }
    return sum;
}

TASKSIEVE_INLINE double soft_square_sum(const double *s, const double *mean, double threshold, index_t tasks) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t q = 0; q < tasks; ++q) {
        const double u = soft(s[q] * mean[q], threshold);
        sum += u * u;
    }
    return sum;
}

// A fixed, small number of tasks lets the compiler unroll the loop over them.
template <int Tasks, class I>
TASKSIEVE_INLINE void gather_fixed(const double *sums, index_t capacity, const I *index, index_t count, index_t task,
                                   const double *mean, double *sizes, double *means) {
    for (index_t k = 0; k < count; ++k) {
        const double *s = sums + index_t(index[k]) * capacity;
        sizes[k] = square_sum(s, mean, Tasks);
        means[k] = s[task] * mean[task];
    }
}

#define TASKSIEVE_GATHER(NAME, I)                                                                                    \
    TASKSIEVE_MULTIVERSION                                                                                           \
    void NAME(const double *sums, index_t capacity, const I *index, index_t count, index_t task,                    \
              const double *mean, double *sizes, double *means) {                                                    \
        switch (capacity) {                                                                                          \
            case 4: return gather_fixed<4>(sums, capacity, index, count, task, mean, sizes, means);                  \
            case 8: return gather_fixed<8>(sums, capacity, index, count, task, mean, sizes, means);                  \
            case 12: return gather_fixed<12>(sums, capacity, index, count, task, mean, sizes, means);                \
            case 16: return gather_fixed<16>(sums, capacity, index, count, task, mean, sizes, means);                \
            case 20: return gather_fixed<20>(sums, capacity, index, count, task, mean, sizes, means);                \
            case 24: return gather_fixed<24>(sums, capacity, index, count, task, mean, sizes, means);                \
            case 28: return gather_fixed<28>(sums, capacity, index, count, task, mean, sizes, means);                \
            case 32: return gather_fixed<32>(sums, capacity, index, count, task, mean, sizes, means);                \
            default: break;                                                                                          \
        }                                                                                                            \
        for (index_t k = 0; k < count; ++k) {                                                                        \
            const double *s = sums + index_t(index[k]) * capacity;                                                   \
            sizes[k] = square_sum(s, mean, capacity);                                                                \
            means[k] = s[task] * mean[task];                                                                         \
        }                                                                                                            \
    }
TASKSIEVE_GATHER(gather_squares32, std::int32_t)
TASKSIEVE_GATHER(gather_squares64, std::int64_t)

template <int Tasks, class I>
TASKSIEVE_INLINE void gather_soft_fixed(const double *sums, index_t capacity, const I *index, index_t count,
                                        index_t task, const double *mean, const double *r, bool uniform, double k_now,
                                        double *sizes, double *means) {
    for (index_t k = 0; k < count; ++k) {
        const double *s = sums + index_t(index[k]) * capacity;
        const double threshold = k_now * r[uniform ? 0 : index_t(index[k])];
        sizes[k] = soft_square_sum(s, mean, threshold, Tasks);
        means[k] = soft(s[task] * mean[task], threshold);
    }
}

#define TASKSIEVE_GATHER_SOFT(NAME, I)                                                                               \
    TASKSIEVE_MULTIVERSION                                                                                           \
    void NAME(const double *sums, index_t capacity, const I *index, index_t count, index_t task,                    \
              const double *mean, const double *r, bool uniform, double k_now, double *sizes, double *means) {                    \
        switch (capacity) {                                                                                          \
            case 4: return gather_soft_fixed<4>(sums, capacity, index, count, task, mean, r, uniform, k_now, sizes, means);   \
            case 8: return gather_soft_fixed<8>(sums, capacity, index, count, task, mean, r, uniform, k_now, sizes, means);   \
            case 12: return gather_soft_fixed<12>(sums, capacity, index, count, task, mean, r, uniform, k_now, sizes, means); \
            case 16: return gather_soft_fixed<16>(sums, capacity, index, count, task, mean, r, uniform, k_now, sizes, means); \
            case 20: return gather_soft_fixed<20>(sums, capacity, index, count, task, mean, r, uniform, k_now, sizes, means); \
            case 24: return gather_soft_fixed<24>(sums, capacity, index, count, task, mean, r, uniform, k_now, sizes, means); \
            case 28: return gather_soft_fixed<28>(sums, capacity, index, count, task, mean, r, uniform, k_now, sizes, means); \
            case 32: return gather_soft_fixed<32>(sums, capacity, index, count, task, mean, r, uniform, k_now, sizes, means); \
            default: break;                                                                                          \
        }                                                                                                            \
        for (index_t k = 0; k < count; ++k) {                                                                        \
            const double *s = sums + index_t(index[k]) * capacity;                                                   \
            const double threshold = k_now * r[uniform ? 0 : index_t(index[k])];                                     \
            sizes[k] = soft_square_sum(s, mean, threshold, capacity);                                                \
            means[k] = soft(s[task] * mean[task], threshold);                                                        \
        }                                                                                                            \
    }
TASKSIEVE_GATHER_SOFT(gather_soft_squares32, std::int32_t)
TASKSIEVE_GATHER_SOFT(gather_soft_squares64, std::int64_t)

void gather_squares(const double *sums, index_t capacity, const std::int32_t *index, index_t count, index_t task,
                    const double *mean, double *sizes, double *means) {
    gather_squares32(sums, capacity, index, count, task, mean, sizes, means);
}
void gather_squares(const double *sums, index_t capacity, const std::int64_t *index, index_t count, index_t task,
                    const double *mean, double *sizes, double *means) {
    gather_squares64(sums, capacity, index, count, task, mean, sizes, means);
}
void gather_soft_squares(const double *sums, index_t capacity, const std::int32_t *index, index_t count, index_t task,
                         const double *mean, const double *r, bool uniform, double k, double *sizes, double *means) {
    gather_soft_squares32(sums, capacity, index, count, task, mean, r, uniform, k, sizes, means);
}
void gather_soft_squares(const double *sums, index_t capacity, const std::int64_t *index, index_t count, index_t task,
                         const double *mean, const double *r, bool uniform, double k, double *sizes, double *means) {
    gather_soft_squares64(sums, capacity, index, count, task, mean, r, uniform, k, sizes, means);
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

double DualAveraging::mean_factor(index_t task) const {
    if (!global()) return inverse[task];
    return steps > 0 ? 1.0 / double(steps) : 0.0;
}

void DualAveraging::resize(index_t new_features, index_t new_tasks) {
    if (new_features == features && new_tasks == tasks) return;
    new_features = std::max(new_features, features);
    new_tasks = std::max(new_tasks, tasks);
    auto grow = [&](std::vector<double> &cells) {
        if (task_major) {
            if (new_features != features) {
                std::vector<double> moved(new_tasks * new_features, 0.0);
                for (index_t q = 0; q < tasks; ++q)
                    std::copy_n(cells.data() + q * features, features, moved.data() + q * new_features);
                cells.swap(moved);
            } else {
                cells.resize(new_tasks * new_features, 0.0);
            }
        } else {
            const index_t wanted = padded(new_tasks);
            if (wanted > capacity) {
                // room to grow: many tasks may join one by one
                const index_t room = capacity >= 32 ? padded(std::max(wanted, capacity + capacity / 2)) : wanted;
                std::vector<double> moved(new_features * room, 0.0);
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
    sizes.resize(new_features, 0.0);
    l1.resize(new_features, l1_default);
    weight.resize(new_tasks, 0.0);
    inverse.resize(std::max<index_t>(padded(new_tasks), capacity), 0.0);
    offset_sums.resize(new_tasks, 0.0);
    offset_total.resize(new_tasks, 0.0);
    in_round.resize(new_tasks, 0);
    features = new_features;
    tasks = new_tasks;
}

void DualAveraging::set_layout(bool wanted_task_major) {
    if (wanted_task_major == task_major) return;
    if (!wanted_task_major) capacity = padded(tasks);
    auto turn = [&](std::vector<double> &cells) {
        std::vector<double> turned(wanted_task_major ? tasks * features : features * capacity, 0.0);
        for (index_t q = 0; q < tasks; ++q)
            for (index_t j = 0; j < features; ++j) {
                if (wanted_task_major)
                    turned[q * features + j] = cells[j * capacity + q];
                else
                    turned[j * capacity + q] = cells[q * features + j];
            }
        cells.swap(turned);
    };
    if (settings.average) turn(total);
    turn(sums);
    if (wanted_task_major) capacity = 0;
    inverse.resize(std::max<index_t>(padded(tasks), capacity), 0.0);
    task_major = wanted_task_major;
    if (!global()) sizes_ready = false;
}

void DualAveraging::flip(index_t task) {
    auto negate = [&](std::vector<double> &cells) {
        for (index_t j = 0; j < features; ++j) {
            double &cell = task_major ? cells[task * features + j] : cells[j * capacity + task];
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
    const bool sums_only = global() && settings.penalty == OnlinePenalty::l21;
    const bool softened = settings.penalty == OnlinePenalty::l1_l21;
    const double k = threshold();
    std::fill(sizes.begin(), sizes.end(), 0.0);
    if (task_major) {
        for (index_t q = 0; q < tasks; ++q) {
            const double mean = sums_only ? 1.0 : mean_factor(q);
            if (softened)
                add_soft_squares(sums.data() + q * features, mean, l1.data(), k, sizes.data(), features);
            else
                add_squares(sums.data() + q * features, mean, sizes.data(), features);
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

template <class I>
double DualAveraging::score(const OnlineRow<I> &row, index_t task) {
    if (steps == 0) return 0.0;
    const double k = threshold(), eta = step_size(), mean = mean_factor(task);
    const bool sums_only = global() && settings.penalty == OnlinePenalty::l21;
    // intercepts are neither penalised nor shrunk by the ridge
    double offset = 0.0;
    if (settings.intercept && settings.gamma > 0.0)
        offset = -std::sqrt(double(steps)) / settings.gamma * offset_sums[task] * mean;
    else if (settings.intercept)
        offset = -eta * offset_sums[task] * mean;
    if (!row.index) {
        const double *s = sums.data() + task * features;
        if (settings.penalty == OnlinePenalty::l11)
            return offset - eta * dot_soft(row.value, s, k, mean, features);
        if (!sizes_ready) refresh_sizes();
        if (sums_only) return offset - eta * mean * dot_group(row.value, s, sizes.data(), k * double(steps), features);
        if (settings.penalty == OnlinePenalty::l21)
            return offset - eta * mean * dot_group(row.value, s, sizes.data(), k, features);
        return offset - eta * dot_soft_group(row.value, s, sizes.data(), l1.data(), k, mean, features);
    }
    const I *index = row.index;
    const index_t count = row.count;
    double sum = 0.0;
    if (settings.penalty == OnlinePenalty::l11) {
        for (index_t i = 0; i < count; ++i)
            sum += row.value[i] * soft(sums[index_t(index[i]) * capacity + task] * mean, k);
        return offset - eta * sum;
    }
    row_sizes_.resize(std::max<size_t>(row_sizes_.size(), count));
    row_means_.resize(std::max<size_t>(row_means_.size(), count));
    double *size = row_sizes_.data(), *entry = row_means_.data(), k_now = k;
    if (sums_only) {
        if (!sizes_ready) refresh_sizes();
        for (index_t i = 0; i < count; ++i) {
            size[i] = sizes[index[i]];
            entry[i] = sums[index_t(index[i]) * capacity + task] * mean;
        }
        k_now = k * double(steps);
    } else {
        if (global()) std::fill(inverse.begin(), inverse.begin() + tasks, mean);
        if (settings.penalty == OnlinePenalty::l21)
            gather_squares(sums.data(), capacity, index, count, task, inverse.data(), size, entry);
        else
            gather_soft_squares(sums.data(), capacity, index, count, task, inverse.data(), l1.data(), l1_uniform, k,
                                size, entry);
    }
    if (!any_above(size, k_now * k_now, count)) return offset;
    return offset - eta * dot_group(row.value, entry, size, k_now, count);
}

template <class I>
void DualAveraging::add_gradient(const OnlineRow<I> &row, double gradient, index_t task, double old_inverse,
                                 double new_inverse) {
    const bool sums_only = global() && settings.penalty == OnlinePenalty::l21;
    offset_sums[task] += gradient;
    if (!row.index) {
        double *s = sums.data() + task * features;
        if (sums_only && sizes_ready) {
            add_with_sum_sizes(row.value, gradient, s, sizes.data(), features);
        } else if (!global() && sizes_ready && settings.penalty == OnlinePenalty::l21) {
            add_with_mean_sizes(row.value, gradient, old_inverse, new_inverse, s, sizes.data(), features);
        } else if (!global() && sizes_ready && settings.penalty == OnlinePenalty::l1_l21 && !moving()) {
            add_with_soft_sizes(row.value, gradient, old_inverse, new_inverse, l1.data(), threshold(), s,
                                sizes.data(), features);
        } else {
            add_plain(row.value, gradient, s, features);
            sizes_ready = false;
        }
        return;
    }
    const index_t stride = task_major ? 1 : capacity;
    double *s = sums.data() + (task_major ? task * features : task);
    if (sums_only && sizes_ready) {
        for (index_t i = 0; i < row.count; ++i) {
            const double d = gradient * row.value[i];
            double &cell = s[index_t(row.index[i]) * stride];
            sizes[row.index[i]] += d * (2.0 * cell + d);
            cell += d;
        }
        return;
    }
    for (index_t i = 0; i < row.count; ++i) s[index_t(row.index[i]) * stride] += gradient * row.value[i];
    sizes_ready = false;
}

// Adds W, the iterate at which the next gradient is taken, to the sum of iterates.
void DualAveraging::add_iterate() {
    if (steps == 0) return;
    if (settings.penalty != OnlinePenalty::l11 && !sizes_ready) refresh_sizes();
    const bool sums_only = global() && settings.penalty == OnlinePenalty::l21;
    const double k = threshold(), eta = step_size();
    row_sizes_.resize(std::max<size_t>(row_sizes_.size(), features));
    double *factor = row_sizes_.data();
    if (settings.penalty != OnlinePenalty::l11)
        shrink_all(sizes.data(), sums_only ? k * double(steps) : k, factor, features);
    for (index_t q = 0; q < tasks; ++q) {
        const double mean = mean_factor(q);
        if (settings.intercept)
            offset_total[q] -= (settings.gamma > 0.0 ? std::sqrt(double(steps)) / settings.gamma : eta) *
                               offset_sums[q] * mean;
        if (task_major) {
            const double *s = sums.data() + q * features;
            double *out = total.data() + q * features;
            if (settings.penalty == OnlinePenalty::l11)
                subtract_soft(s, eta, mean, k, out, features);
            else if (settings.penalty == OnlinePenalty::l21)
                subtract_scaled(s, factor, eta * mean, out, features);
            else
                subtract_soft_scaled(s, factor, l1.data(), eta, mean, k, out, features);
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
        add_gradient(row, round_gradient[k], round_task[k], 0.0, 0.0);
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
    const double z = score(row, task);
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
    add_gradient(row, gradient, task, before, after);
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
            const double u = (task_major ? sums[q * features + j] : sums[j * capacity + q]) * mean_factor(q);
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
        out[q] = 0.0;
        if (!settings.intercept || steps == 0) continue;
        const double scale = settings.gamma > 0.0 ? std::sqrt(double(steps)) / settings.gamma : step_size();
        out[q] = -scale * offset_sums[q] * mean_factor(q);
    }
}

template bool DualAveraging::learn(const OnlineRow<std::int32_t> &, double, index_t, double);
template bool DualAveraging::learn(const OnlineRow<std::int64_t> &, double, index_t, double);
template double DualAveraging::score(const OnlineRow<std::int32_t> &, index_t);
template double DualAveraging::score(const OnlineRow<std::int64_t> &, index_t);

}  // namespace tasksieve
