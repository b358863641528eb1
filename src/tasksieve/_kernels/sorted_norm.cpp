#include "sorted_norm.hpp"

#include <limits>
#include <numeric>

#include "algebra.hpp"
#include "blas.hpp"
#include "losses.hpp"
#include "passes.hpp"
#include "vectors.hpp"

namespace tasksieve {

namespace {

// a . (b - c), and |b - c|^2
TASKSIEVE_MULTIVERSION double difference_dot(const double *a, const double *b, const double *c, index_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t i = 0; i < n; ++i) sum += a[i] * (b[i] - c[i]);
    return sum;
}

TASKSIEVE_MULTIVERSION double squared_distance(const double *a, const double *b, index_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t i = 0; i < n; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

TASKSIEVE_MULTIVERSION void extrapolate(const double *now, const double *before, double beta, index_t n, double *out) {
#pragma omp simd
    for (index_t i = 0; i < n; ++i) out[i] = now[i] + beta * (now[i] - before[i]);
}

// y += sign sum_j w_j x_j over the columns j: the output is read and written once for four of them.
TASKSIEVE_MULTIVERSION void add_columns(const double *x, index_t n, const std::vector<index_t> &columns,
                                        const double *w, double sign, double *y) {
    const index_t count = columns.size();
    index_t k = 0;
    for (; k + 4 <= count; k += 4) {
        const index_t *j = columns.data() + k;
        const double *a = x + j[0] * n, *b = x + j[1] * n, *c = x + j[2] * n, *d = x + j[3] * n;
        const double f0 = sign * w[j[0]], f1 = sign * w[j[1]], f2 = sign * w[j[2]], f3 = sign * w[j[3]];
#pragma omp simd
        for (index_t i = 0; i < n; ++i) y[i] += f0 * a[i] + f1 * b[i] + f2 * c[i] + f3 * d[i];
    }
    for (; k < count; ++k) inline_axpy(sign * w[columns[k]], x + columns[k] * n, n, y);
}

// Four dot products with one vector, which is read once.
TASKSIEVE_MULTIVERSION void dot4(const double *a, const double *b, const double *c, const double *d, const double *v,
                                 index_t n, double *out) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (index_t i = 0; i < n; ++i) {
        s0 += a[i] * v[i];
        s1 += b[i] * v[i];
        s2 += c[i] * v[i];
        s3 += d[i] * v[i];
    }
    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;
}

TASKSIEVE_MULTIVERSION void plain_norms(const double *rows, index_t count, index_t tasks, double *out) {
    if (tasks == 1) {
        for (index_t j = 0; j < count; ++j) out[j] = std::abs(rows[j]);
        return;
    }
    for (index_t j = 0; j < count; ++j) {
        const double *row = rows + j * tasks;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (index_t t = 0; t < tasks; ++t) sum += row[t] * row[t];
        out[j] = std::sqrt(sum);
    }
}

}  // namespace

void SortedNorm::norms(const double *rows, index_t count, index_t tasks, bool positive) {
    norm_.resize(count);
    if (!positive) {
        plain_norms(rows, count, tasks, norm_.data());
        return;
    }
    for (index_t j = 0; j < count; ++j) {
        const double *row = rows + j * tasks;
        double sum = 0.0;
        for (index_t t = 0; t < tasks; ++t) sum += row[t] > 0.0 ? row[t] * row[t] : 0.0;
        norm_[j] = std::sqrt(sum);
    }
}

// Decreasing norms, ties by row. Iterates change little, so the last order is mended by insertion; where that gets
// long, it is sorted anew.
void SortedNorm::sort(std::vector<Entry> &entries) {
    const index_t count = norm_.size();
    const auto before = [](const Entry &a, const Entry &b) {
        return a.norm > b.norm || (a.norm == b.norm && a.row < b.row);
    };
    bool fresh = index_t(entries.size()) != count;
    if (fresh) {
        entries.resize(count);
        for (index_t j = 0; j < count; ++j) entries[j].row = j;
    }
    for (auto &entry : entries) entry.norm = norm_[entry.row];
    index_t budget = fresh ? 0 : 6 * count;
    index_t k = 1;
    for (; k < count && budget >= 0; ++k) {
        if (!before(entries[k], entries[k - 1])) continue;
        const Entry moving = entries[k];
        index_t place = k;
        while (place > 0 && before(moving, entries[place - 1])) {
            entries[place] = entries[place - 1];
            --place;
        }
        entries[place] = moving;
        budget -= k - place;
    }
    if (k < count) std::sort(entries.begin(), entries.end(), before);
}

void SortedNorm::prox(const double *rows, index_t count, index_t tasks, const double *weights, double step,
                      bool positive, double *out) {
    norms(rows, count, tasks, positive);
    sort(order_);
    // Pool adjacent violators: the best non-increasing sequence near norms - step weights.
    blocks_.resize(count);
    index_t used = 0;
    for (index_t k = 0; k < count; ++k) {
        Block block{order_[k].norm - step * weights[k], k, 1};
        // sums and sizes rather than means: no division until the end
        while (used > 0 && blocks_[used - 1].sum * double(block.size) <= block.sum * double(blocks_[used - 1].size)) {
            --used;
            block = {blocks_[used].sum + block.sum, blocks_[used].first, blocks_[used].size + block.size};
        }
        blocks_[used++] = block;
    }
    for (index_t b = 0; b < used; ++b) {
        const double level = blocks_[b].sum / double(blocks_[b].size);
        for (index_t k = blocks_[b].first; k < blocks_[b].first + blocks_[b].size; ++k) {
            const index_t j = order_[k].row;
            const double *row = rows + j * tasks;
            double *target = out + j * tasks;
            if (!(level > 0.0) || order_[k].norm == 0.0) {
                std::fill(target, target + tasks, 0.0);
                continue;
            }
            if (tasks == 1) {  // ties stay exact
                target[0] = row[0] > 0.0 ? level : -level;
                continue;
            }
            const double factor = level / order_[k].norm;
            for (index_t t = 0; t < tasks; ++t) target[t] = positive && row[t] < 0.0 ? 0.0 : factor * row[t];
        }
    }
}

double SortedNorm::polar(const double *rows, index_t count, index_t tasks, const double *weights, bool positive) {
    norms(rows, count, tasks, positive);
    sort(polar_order_);
    double largest = 0.0, sum = 0.0, total = 0.0;
    for (index_t k = 0; k < count; ++k) {
        sum += polar_order_[k].norm;
        total += weights[k];
        if (sum > largest * total) largest = sum / total;
    }
    return largest;
}

double SortedNorm::value(const double *rows, index_t count, index_t tasks, const double *weights) {
    norms(rows, count, tasks, false);
    sort(value_order_);
    double sum = 0.0;
    for (index_t k = 0; k < count && value_order_[k].norm > 0.0; ++k) sum += weights[k] * value_order_[k].norm;
    return sum;
}

// products = X'(target - X W), image = X W (not with a Gram matrix); returns 1/2 ||target - X W||^2.
double SortedFista::correlate(const SortedProblem &p, const double *w, double *products, double *image) {
    const index_t T = p.tasks, size = p.count * T;
    support_.clear();
    for (index_t j = 0; j < p.count; ++j) {
        const double *row = w + j * T;
        if (std::any_of(row, row + T, [](double v) { return v != 0.0; })) support_.push_back(j);
    }
    if (p.gram) {
        if (T == 1) {
            std::copy(p.y_products, p.y_products + size, products);
            add_columns(p.gram, p.count, support_, w, -1.0, products);
        } else {
            // products (count x T, row-major) is T x count for BLAS: W' G
            gemm('N', 'N', T, p.count, p.count, w, T, p.gram, p.count, 0.0, products, T);
            for (index_t i = 0; i < size; ++i) products[i] = p.y_products[i] - products[i];
        }
        double inner = 0.0;
        for (index_t i = 0; i < size; ++i) inner += w[i] * (p.y_products[i] + products[i]);
        return 0.5 * std::max(p.y_squared - inner, 0.0);
    }
    const index_t samples = p.offsets[T];
    if (T == 1) {
        std::fill(image, image + samples, 0.0);
        add_columns(p.x, p.rows, support_, w, 1.0, image);
    } else {
        const index_t live = support_.size();
        support_rows_.resize(live * T);
        for (index_t k = 0; k < live; ++k)
            std::copy(w + support_[k] * T, w + support_[k] * T + T, support_rows_.data() + k * T);
        combine(p.x, p.rows, p.offsets, T, p.shared, support_.data(), live, support_rows_.data(), p.threads, image);
    }
    residual_.resize(samples);
    add_scaled(p.target, image, -1.0, samples, residual_.data());
    if (T == 1) {
        index_t j = 0;
        const double *x = p.x;
        for (; j + 4 <= p.count; j += 4)
            dot4(x + j * p.rows, x + (j + 1) * p.rows, x + (j + 2) * p.rows, x + (j + 3) * p.rows, residual_.data(),
                 p.rows, products + j);
        for (; j < p.count; ++j) products[j] = dot(x + j * p.rows, residual_.data(), p.rows);
    } else if (p.shared) {
        shared_products(p.x, p.rows, static_cast<const index_t *>(nullptr), p.count, residual_.data(), T, false,
                        p.threads, products);
    } else {
        segment_products(p.x, p.rows, static_cast<const index_t *>(nullptr), p.count, residual_.data(), p.offsets, T,
                         false, p.threads, products);
    }
    return 0.5 * dot(residual_.data(), residual_.data(), samples);
}

SortedReport SortedFista::solve(const SortedProblem &p, double *w, double *dual_w, double tol, index_t max_iter,
                                index_t check_every, double curvature) {
    const index_t size = p.count * p.tasks, samples = p.gram ? 0 : p.offsets[p.tasks];
    for (auto *buffer : {&previous_, &following_, &point_, &products_, &previous_products_, &following_products_,
                         &point_products_})
        buffer->resize(size);
    for (auto *buffer : {&image_, &previous_image_, &following_image_}) buffer->resize(samples);
    double loss = correlate(p, w, products_.data(), image_.data());
    std::copy(w, w + size, previous_.begin());
    std::copy(products_.begin(), products_.end(), previous_products_.begin());
    std::copy(image_.begin(), image_.end(), previous_image_.begin());
    double momentum = 1.0, beta = 0.0;
    double best_dual = -std::numeric_limits<double>::infinity();
    SortedReport report;
    report.curvature = curvature;
    const double floor = 1e-3 * curvature;
    while (true) {
        const bool last = report.iterations >= max_iter;
        // At least one step: what is returned went through the prox, so its ties are exact.
        if (last || (report.iterations > 0 && report.iterations % check_every == 0)) {
            const double penalty = norm_.value(w, p.count, p.tasks, p.weights);
            const double inner = dot(w, products_.data(), size);
            const double polar = norm_.polar(products_.data(), p.count, p.tasks, p.weights, p.positive);
            const double limit = polar > 0.0 ? 1.0 / (polar * (1.0 + 1e-12)) : 1.0;
            const double free = loss > 0.0 ? (2.0 * loss + inner) / (2.0 * loss) : 0.0;
            const double scale = std::max(std::min(free, limit), 0.0);
            const double gap = (1.0 - scale) * (1.0 - scale) * loss + std::max(penalty - scale * inner, 0.0);
            const double objective = loss + penalty;
            if (objective - gap > best_dual) {
                best_dual = objective - gap;
                std::copy(w, w + size, dual_w);
                report.gap = gap;
            } else {
                report.gap = objective - best_dual;
            }
            if (report.gap <= tol || last) return report;
        }
        extrapolate(w, previous_.data(), beta, size, point_.data());
        extrapolate(products_.data(), previous_products_.data(), beta, size, point_products_.data());
        double value = 0.0;
        for (int attempt = 0;; ++attempt) {
            // following = prox(point + products / L)
            add_scaled(point_.data(), point_products_.data(), 1.0 / report.curvature, size, following_.data());
            norm_.prox(following_.data(), p.count, p.tasks, p.weights, 1.0 / report.curvature, p.positive,
                       following_.data());
            value = correlate(p, following_.data(), following_products_.data(), following_image_.data());
            // ||X d||^2 = <d, X'X d> for d = following - point, and X'X d = point_products - following_products
            const double length = squared_distance(following_.data(), point_.data(), size);
            double bend = 0.0;
            if (p.gram) {
                bend = difference_dot(following_.data(), point_products_.data(), following_products_.data(), size) -
                       difference_dot(point_.data(), point_products_.data(), following_products_.data(), size);
            } else {
                const double *z = following_image_.data();
                for (index_t i = 0; i < samples; ++i) {
                    const double e = z[i] - image_[i] - beta * (image_[i] - previous_image_[i]);
                    bend += e * e;
                }
            }
            if (bend <= report.curvature * length * (1.0 + 1e-9) || length == 0.0 || attempt == 40) break;
            report.curvature = std::max(1.02 * bend / length, 1.05 * report.curvature);
        }
        report.curvature = std::max(0.985 * report.curvature, floor);
        const double uphill = [&] {
            double sum = 0.0;
            for (index_t i = 0; i < size; ++i) sum += (point_[i] - following_[i]) * (following_[i] - w[i]);
            return sum;
        }();
        if (uphill > 0.0) {
            momentum = 1.0;
            beta = 0.0;
        } else {
            const double grown = 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum * momentum));
            beta = (momentum - 1.0) / grown;
            momentum = grown;
        }
        std::copy(w, w + size, previous_.begin());
        std::copy(following_.begin(), following_.end(), w);
        std::swap(previous_products_, products_);
        std::swap(products_, following_products_);
        std::swap(previous_image_, image_);
        std::swap(image_, following_image_);
        loss = value;
        ++report.iterations;
    }
}

void SortedSvrg::epoch(const StochasticProblem &p, double *w, double *b, const double *reference_z,
                       const double *gradient, const double *reference_b, const double *b_gradient,
                       const index_t *batches, index_t steps, index_t size, double step) {
    const index_t T = p.tasks, count = p.x.count, entries = count * T;
    const double scale = double(p.x.rows) / double(size);  // the correction estimates a sum over all rows
    const bool dense = p.x.dense != nullptr;
    point_.resize(entries);
    z_.resize(T), old_.resize(T), centre_z_.resize(T), total_.resize(T), b_change_.resize(T);
    if (dense) change_.resize(entries), direction_.resize(entries);
    for (index_t s = 0; s < steps; ++s) {
        // point = w - step (gradient + correction)
        add_scaled(w, gradient, -step, entries, point_.data());
        if (p.x.centre) {
            std::fill(centre_z_.begin(), centre_z_.end(), 0.0);
            for (index_t j = 0; j < count; ++j) axpy(p.x.centre[j], w + j * T, T, centre_z_.data());
            std::fill(total_.begin(), total_.end(), 0.0);
        }
        if (dense) {  // task by task, so that loops run along the features
            std::fill(change_.begin(), change_.end(), 0.0);
            for (index_t j = 0; j < count; ++j)
                for (index_t t = 0; t < T; ++t) direction_[t * count + j] = w[j * T + t];
        }
        std::fill(b_change_.begin(), b_change_.end(), 0.0);
        const double factor = -step * scale;
        for (index_t l = 0; l < size; ++l) {
            const index_t i = batches[s * size + l];
            const double root = p.root ? p.root[i] : 1.0;
            if (root == 0.0) continue;
            const index_t first = p.task_of ? p.task_of[i] : 0, last = p.task_of ? first + 1 : T;
            const auto row = dense ? Entries<double, std::int32_t>{} : p.x.sparse[i];
            if (dense) {
                for (index_t t = first; t < last; ++t)
                    z_[t] = dot(p.x.dense + i * count, direction_.data() + t * count, count);
            } else {
                std::fill(z_.begin(), z_.end(), 0.0);
                for (index_t q = 0; q < row.count; ++q) axpy(row.value[q], w + row.index[q] * T, T, z_.data());
                for (index_t t = 0; t < T; ++t) z_[t] = root * (z_[t] - (p.x.centre ? centre_z_[t] : 0.0));
            }
            // difference of the loss gradients in z at w and at the reference
            const double *past = reference_z + (p.task_of ? i : i * T);
            if (!p.multinomial) {
                for (index_t t = first; t < last; ++t) old_[t] = z_[t] - past[t - first];
            } else {
                for (index_t t = 0; t < T; ++t) {
                    z_[t] = z_[t] / root + (p.intercept ? b[t] : 0.0);
                    old_[t] = past[t] / root + (p.intercept ? reference_b[t] : 0.0);
                }
                softmax(z_.data(), T);
                softmax(old_.data(), T);
                for (index_t t = 0; t < T; ++t) {
                    const double change = z_[t] - old_[t];
                    old_[t] = root * change;
                    b_change_[t] += root * root * change;
                }
            }
            if (dense) {
                for (index_t t = first; t < last; ++t)
                    axpy(old_[t], p.x.dense + i * count, count, change_.data() + t * count);
            } else {
                for (index_t q = 0; q < row.count; ++q)
                    axpy(factor * root * row.value[q], old_.data(), T, point_.data() + row.index[q] * T);
                if (p.x.centre) axpy(factor * root, old_.data(), T, total_.data());
            }
        }
        if (dense)
            for (index_t j = 0; j < count; ++j)
                for (index_t t = 0; t < T; ++t) point_[j * T + t] += factor * change_[t * count + j];
        if (p.x.centre)
            for (index_t j = 0; j < count; ++j) axpy(-p.x.centre[j], total_.data(), T, point_.data() + j * T);
        if (p.intercept)
            for (index_t t = 0; t < T; ++t) b[t] -= step * (b_gradient[t] + scale * b_change_[t]);
        norm_.prox(point_.data(), count, T, p.weights, step, p.positive, w);
    }
}

}  // namespace tasksieve
