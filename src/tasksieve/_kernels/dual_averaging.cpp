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
// an upper bound of today's (if k does not move inside V). `bounds` keeps one, in O(1) per touched entry. A feature
// whose bound is at most k^2 is out of the model; the norms of the others are computed, in O(T). The bounds decide
// nothing but what need not be computed: results do not depend on them. They are in single precision, which halves the
// memory that every row looks into.
//
// gamma = "auto" moves gamma, which enters k (rho > 0) and eta only; and it shortens steps, see `shortened`.
#include "dual_averaging.hpp"

#include <limits>

#include "losses.hpp"
#include "shrinkage.hpp"

namespace tasksieve {

namespace {

constexpr index_t kRefresh = 512;         // dense rows
constexpr index_t kSparseRefresh = 1 << 17;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// --- dense rows: everything contiguous over the features, in whole blocks of 8 -----------------------------------

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
void add_row(const double *x, double g, double *s, index_t n) {
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

TASKSIEVE_MULTIVERSION
double squared_norm(const double *x, index_t n) {
    double sum = 0.0;
    for (index_t j = 0; j < n / 8 * 8; ++j) sum += x[j] * x[j];
    return sum;
}

// --- gamma = "auto" (found by benchmarks/online_gamma.py) -----------------------------------------------------------

constexpr double kShare = 0.5;     // of L m^2
constexpr double kBefore = 30.0;   // rows of zeros before the first
constexpr double kCut = 4.0;       // times the mean so far, at most

// A row is beyond learning where squares could overflow, or where a prediction, before or after it, is so large that the
// targets (which it is to be compared with) vanish in its rounding.
constexpr double kSquares = 1e280, kRounding = 0x1p52;
constexpr double kLarge = 1e8;  // times the usual squared norm: suspicious

double value(OnlineLoss loss, double z, double y) {
    switch (loss) {
        case OnlineLoss::squared: return 0.5 * (z - y) * (z - y);
        case OnlineLoss::logistic: return log1p_exp(-y * z);
        default: return std::max(0.0, 1.0 - y * z);
    }
}

// Of the second derivative; the hinge has none, and is taken as 1 wide.
double largest_curvature(OnlineLoss loss) { return loss == OnlineLoss::logistic ? 0.25 : 1.0; }

double derivative(OnlineLoss loss, double z, double y) {
    switch (loss) {
        case OnlineLoss::squared: return z - y;
        case OnlineLoss::logistic: return logistic_derivative(z, y);
        default: return y * z < 1.0 ? -y : 0.0;
    }
}

index_t padded(index_t tasks) { return (std::max<index_t>(tasks, 1) + 3) / 4 * 4; }

}  // namespace

void AutoGamma::Mean::add(double value) {
    sum += rows > 0.0 ? std::min(value, kCut * sum / rows) : value;
    rows += 1.0;
}

void AutoGamma::add(double norm, double crowding, double curvature) {
    crowd.add(crowding);
    const double u = crowd.sum / crowd.rows;
    offset_next = std::max(offset_next, u * u);
    if (!(norm > 0.0)) return;
    size.add(norm * crowding);
    const double mean = size.sum / (size.rows + kBefore);
    next = std::max(next, kShare * curvature * mean * mean);
}

void AutoGamma::start(double gamma) {
    next = used = std::max(next, gamma);
    offset_next = offset_used = std::max(offset_next, gamma);
}

void Foresight::resize(index_t tasks) {
    for (auto *each : {&weight, &loss, &hits, &mean, &spread}) each->resize(tasks, 0.0);
}

void Foresight::add(index_t task, double row_weight, double y, double z, double row_loss, index_t rows) {
    weight[task] += row_weight;
    loss[task] += row_weight * row_loss;
    if (y * z > 0.0) hits[task] += row_weight;
    const double away = y - mean[task];
    mean[task] += away * (row_weight / weight[task]);
    spread[task] += row_weight * away * (y - mean[task]);
    if ((rows & (rows - 1)) != 0) return;
    double all[2] = {0.0, 0.0};
    for (size_t q = 0; q < weight.size(); ++q) {
        all[0] += weight[q];
        all[1] += loss[q];
    }
    curve.insert(curve.end(), all, all + 2);
}

double DualAveraging::threshold() const {
    const double t = double(std::max<index_t>(steps, 1));
    return settings.alpha + settings.enhanced * gamma() / std::sqrt(t);
}

double DualAveraging::step_size() const {
    const double t = double(std::max<index_t>(steps, 1));
    return 1.0 / (settings.ridge + gamma() / std::sqrt(t));
}

// What a gradient (its weight included) is multiplied by in the mean after this step.
double DualAveraging::reach(index_t task, double row_weight) const {
    return settings.rule == MissingRule::rounds ? 1.0 / double(steps + 1) : 1.0 / (weight[task] + row_weight);
}

// Whether a row with prediction z can be learned.
bool DualAveraging::possible(double z, double gradient, double size, double y, index_t task, double row_weight) const {
    if (!std::isfinite(z) || !std::isfinite(y) || !(size * gradient * gradient <= kSquares)) return false;
    if (settings.loss != OnlineLoss::squared) return true;
    const double most = kRounding * std::max(largest, std::fabs(y));
    if (!(std::fabs(z) <= most)) return false;
    if (settings.automatic) return true;
    // |eta gradient reach size| <= most, without a division
    const double root = std::sqrt(double(steps + 1));
    const double count = settings.rule == MissingRule::rounds ? double(steps + 1) : weight[task] + row_weight;
    return std::fabs(gradient) * size * root <= most * count * (settings.ridge * root + settings.gamma);
}

// What gamma becomes with one more row.
AutoGamma DualAveraging::after(double size, index_t task, double row_weight) const {
    AutoGamma then = automatic;
    const double share = row_weight * double(steps + 1) * reach(task, row_weight);
    then.add(std::sqrt(size), std::sqrt(std::sqrt(share)), largest_curvature(settings.loss));
    return then;
}

// The gradient cut so that its step does not move the row's own prediction beyond its target (by the largest curvature of
// the loss). That keeps the first rows of a task, and rows much larger than others, from overshooting; later steps fall
// like 1/sqrt(t), and are what they are. `automatic` is that of after the row.
double DualAveraging::shortened(double gradient, double size, index_t task, double row_weight) const {
    const double root = std::sqrt(double(steps + 1));
    double moved = size > 0.0 ? size / (settings.ridge + automatic.next / root) : 0.0;
    if (settings.intercept) moved += root / automatic.offset_next;
    moved *= row_weight * reach(task, row_weight) * largest_curvature(settings.loss);
    return moved > 1.0 ? gradient / moved : gradient;
}

void DualAveraging::end_step() {
    ++steps;
    automatic.step();
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
    const double own = settings.automatic ? automatic.offset_used : settings.gamma;
    const double scale = own > 0.0 ? std::sqrt(double(steps)) / own : eta;
    return -scale * offset_sums[task] * mean;
}

void DualAveraging::resize(index_t new_features, index_t new_tasks) {
    if (new_features == features && new_tasks == tasks) return;
    new_features = std::max(new_features, features);
    new_tasks = std::max(new_tasks, tasks);
    const index_t new_width = padded_width(new_features), wanted = padded(new_tasks);
    index_t room = capacity;  // for the tasks of a feature, and to grow: many may join one by one
    if (!task_major && wanted > capacity)
        room = capacity >= 32 ? padded(std::max(wanted, capacity + capacity / 2)) : wanted;
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
            if (room > capacity) {
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
    capacity = room;
    sizes.resize(new_width, 0.0);
    bounds.resize(new_width, kInfinity);
    l1.resize(new_width, l1_default);
    std::fill(l1.begin() + features, l1.end(), l1_default);
    weight.resize(new_tasks, 0.0);
    inverse.resize(std::max<index_t>(wanted, capacity), 0.0);
    offset_sums.resize(new_tasks, 0.0);
    offset_total.resize(new_tasks, 0.0);
    in_round.resize(new_tasks, 0);
    foresight.resize(new_tasks);
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
    dense_row_.resize(width);
    std::copy_n(x, features, dense_row_.data());
    std::fill(dense_row_.begin() + features, dense_row_.end(), 0.0);
    return dense_row_.data();
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

SparseState DualAveraging::sparse_state(index_t task) {
    return {sums.data(),
            task_major ? 1 : capacity,
            sizes.data(),
            bounds.data(),
            inverse.data(),
            settings.penalty == OnlinePenalty::l1_l21 ? l1.data() : nullptr,
            l1_uniform,
            task};
}

template <class I>
void DualAveraging::read_row(const OnlineRow<I> &row, index_t task, SparseRow &out) const {
    out.read(row.value, row.index, row.count, task_major ? 1 : capacity, task_major ? task * width : task);
}

// Leaves in `at_` what it read of the state.
double DualAveraging::score_sparse(const SparseRow &row, index_t task, const SparseRow &next) {
    at_.reserve((std::max(row.blocks, next.blocks) + 1) * 8);
    if (norms_kept() && !sizes_ready) refresh_sizes();
    const SparseState state = sparse_state(task);
    if (steps == 0) {
        read_state(row, state, norms_kept(), at_);
        return 0.0;
    }
    const double k = threshold(), eta = step_size(), mean = mean_factor(task);
    const double start = offset(task, mean, eta);
    if (settings.penalty == OnlinePenalty::l11) return start - eta * dot_softened(row, state, at_, k, mean, next);
    if (norms_kept()) return start - eta * mean * dot_normed(row, state, at_, k * double(steps), next);
    if (global()) std::fill(inverse.begin(), inverse.begin() + tasks, mean);
    return start - eta * dot_bounded(row, state, at_, k, bounded(), next);
}

template <class I>
double DualAveraging::score(const OnlineRow<I> &row, index_t task) {
    if (!row.index) return score_dense(padded_row(row.value), task);
    read_row(row, task, row_);
    return score_sparse(row_, task, nothing_);
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
        add_row(x, gradient, s, width);
        sizes_ready = false;
    }
}

// From what `at_` holds. `new_mean`: what the task's sum is to be multiplied by after this step.
void DualAveraging::add_sparse(const SparseRow &row, double gradient, index_t task, double new_mean,
                               const SparseRow &next) {
    offset_sums[task] += gradient;
    const SparseState state = sparse_state(task);
    if (norms_kept() && sizes_ready) return add_normed(row, state, at_, gradient, next);
    sizes_ready = false;
    if (settings.penalty == OnlinePenalty::l11 || norms_kept() || !bounded())
        add_plain(row, state, at_, gradient);
    else
        add_bounded(row, state, at_, gradient, new_mean, threshold(), next);
}

// Adds W, the iterate at which the next gradient is taken, to the sum of iterates.
void DualAveraging::add_iterate() {
    if (steps == 0) return;
    if (settings.penalty != OnlinePenalty::l11 && !sizes_ready) refresh_sizes();
    const bool sums_only = norms_kept();
    const double k = threshold(), eta = step_size();
    factors_.resize(width);
    double *factor = factors_.data();
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
        read_row(row, round_task[k], round_row_);
        at_.reserve((round_row_.blocks + 1) * 8);
        read_state(round_row_, sparse_state(round_task[k]), norms_kept(), at_);
        add_sparse(round_row_, round_gradient[k], round_task[k], 1.0 / double(steps + 1), nothing_);
        in_round[round_task[k]] = 0;
    }
    end_step();
    round_task.clear();
    round_start.clear();
    round_gradient.clear();
    round_index.clear();
    round_value.clear();
    if (settings.penalty != OnlinePenalty::l21 || steps % kRefresh == 0) sizes_ready = false;
}

// The row is dense if `x` is given, else sparse.
bool DualAveraging::learn(const double *x, const SparseRow &row, double y, index_t task, double row_weight,
                          const SparseRow &next) {
    const bool by_rounds = settings.rule == MissingRule::rounds;
    const double *dense = x ? padded_row(x) : nullptr;
    const double size = dense ? squared_norm(dense, width) : squared_norm(row.value.data(), row.blocks * 8);
    if (by_rounds && in_round[task]) {
        // an absurd row ends no round: what is much larger than the rows so far is judged at a copy
        const double usual = automatic.size.rows > 0.0 ? automatic.size.sum / automatic.size.rows : 0.0;
        double then = 0.0;
        if (!(size <= kLarge * usual * usual)) {
            DualAveraging copy = closed();
            then = dense ? copy.score_dense(dense, task) : copy.score_sparse(row, task, copy.nothing_);
        }
        if (!possible(then, row_weight * derivative(settings.loss, then, y), size, y, task, row_weight)) return false;
        close_round();
    }
    const double z = dense ? score_dense(dense, task) : score_sparse(row, task, next);
    double gradient = row_weight * derivative(settings.loss, z, y);
    if (!possible(z, gradient, size, y, task, row_weight)) return false;
    if (settings.automatic || by_rounds) automatic = after(size, task, row_weight);
    if (settings.automatic) gradient = shortened(gradient, size, task, row_weight);
    if (settings.average && (!by_rounds || round_task.empty())) add_iterate();
    ++rows;
    foresight.add(task, row_weight, y, z, value(settings.loss, z, y), rows);
    largest = std::max(largest, std::fabs(y));
    const double before = inverse[task];
    weight[task] += row_weight;
    if (by_rounds) {
        const index_t count = x ? features : row.count;
        round_task.push_back(task);
        round_gradient.push_back(gradient);
        round_start.push_back(round_index.size());
        for (index_t i = 0; i < count; ++i) {
            round_index.push_back(x ? i : row.feature[i]);
            round_value.push_back(x ? x[i] : row.value[i]);
        }
        in_round[task] = 1;
        return true;
    }
    const double after = 1.0 / weight[task];
    if (settings.rule == MissingRule::importance) gradient *= double(steps + 1) * after;
    if (dense)
        add_dense(dense, gradient, task, before, after);
    else
        add_sparse(row, gradient, task, global() ? 1.0 / double(steps + 1) : after, next);
    if (!global()) inverse[task] = after;
    end_step();
    if (settings.penalty == OnlinePenalty::l11) return true;
    if (moving() || (dense ? steps < 64 || steps % kRefresh == 0 : steps % kSparseRefresh == 0)) sizes_ready = false;
    return true;
}

template <class I>
bool DualAveraging::accepts(const OnlineRow<I> &known, double size, double y, index_t task, double row_weight) {
    const double z = score(known, task);
    return possible(z, row_weight * derivative(settings.loss, z, y), size, y, task, row_weight);
}

template <class I>
bool DualAveraging::learn(const OnlineRow<I> &row, double y, index_t task, double row_weight) {
    if (row.index) read_row(row, task, row_);
    return learn(row.index ? nullptr : row.value, row_, y, task, row_weight, nothing_);
}

template <class I>
index_t DualAveraging::learn_rows(const Compressed<double, I> &rows, const double *y, const index_t *task,
                                  const double *row_weight) {
    auto prepare = [&](index_t i) -> const SparseRow & {
        if (i >= rows.lines) return nothing_;
        SparseRow &ready = ready_[i % (kAhead + 1)];
        read_row(rows[i], task[i], ready);
        // the rows themselves pass through the caches that the state fills: ask for the one after, line by line
        const index_t end = rows.indptr[i + 1], after = i + 1 < rows.lines ? index_t(rows.indptr[i + 2]) : end;
        for (index_t k = end; k < after; k += 64 / sizeof(double)) fetch_ahead(rows.data + k);
        for (index_t k = end; k < after; k += 64 / sizeof(I)) fetch_ahead(rows.indices + k);
        return ready;
    };
    for (index_t i = 0; i < std::min(kAhead, rows.lines); ++i) prepare(i);
    for (index_t i = 0; i < rows.lines; ++i) {
        const SparseRow &next = prepare(i + kAhead);
        const double s = row_weight ? row_weight[i] : 1.0;
        if (s > 0.0 && !learn(nullptr, ready_[i % (kAhead + 1)], y[i], task[i], s, next)) return i;
    }
    return rows.lines;
}

void DualAveraging::weights(double *out) const {
    if (!round_task.empty()) return closed().weights(out);
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
    if (!round_task.empty()) return closed().intercepts(out);
    for (index_t q = 0; q < tasks; ++q) out[q] = steps == 0 ? 0.0 : offset(q, mean_factor(q), step_size());
}

template bool DualAveraging::learn(const OnlineRow<std::int32_t> &, double, index_t, double);
template bool DualAveraging::learn(const OnlineRow<std::int64_t> &, double, index_t, double);
template index_t DualAveraging::learn_rows(const Compressed<double, std::int32_t> &, const double *, const index_t *,
                                           const double *);
template index_t DualAveraging::learn_rows(const Compressed<double, std::int64_t> &, const double *, const index_t *,
                                           const double *);
template bool DualAveraging::accepts(const OnlineRow<std::int64_t> &, double, double, index_t, double);
template double DualAveraging::score(const OnlineRow<std::int32_t> &, index_t);
template double DualAveraging::score(const OnlineRow<std::int64_t> &, index_t);

}  // namespace tasksieve
