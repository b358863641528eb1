#include "active_set.hpp"

#include <functional>

#include "gram_path.hpp"
#include "vectors.hpp"

namespace tasksieve {

namespace {

constexpr double exceeds = 1.0 + 1e-11;  // of its threshold
constexpr index_t few_at_once = 16;

// h -= sum_k factor_k row_k, over a stretch of columns at a time that stays near.
TASKSIEVE_MULTIVERSION void subtract_rows(const double *const *rows, const double *factors, index_t count, index_t n,
                                          double *h) {
    constexpr index_t stretch = 512;
    for (index_t first = 0; first < n; first += stretch) {
        const index_t size = std::min(stretch, n - first);
        double *out = h + first;
        index_t k = 0;
        for (; k + 4 <= count; k += 4) {
            const double *a = rows[k] + first, *b = rows[k + 1] + first, *c = rows[k + 2] + first, *d = rows[k + 3] + first;
            const double fa = factors[k], fb = factors[k + 1], fc = factors[k + 2], fd = factors[k + 3];
#pragma omp simd
            for (index_t i = 0; i < size; ++i) out[i] -= (fa * a[i] + fb * b[i]) + (fc * c[i] + fd * d[i]);
        }
        for (; k < count; ++k) inline_axpy(-factors[k], rows[k] + first, size, out);
    }
}

}  // namespace

ActiveSet::ActiveSet(const EntryProblem &problem)
    : p_(problem), inside_(problem.features, 0), rows_(problem.features) {}

// The panels are made for many rows of a block at a time; here they are few, and needed again and again.
const double *ActiveSet::row(index_t feature) {
    if (!rows_[feature]) {
        const index_t panels = panels_of(p_.features);
        rows_[feature].reset(new double[panels * panel_columns]);
        const double *from = p_.gram + panel_at(p_.features, feature, 0);
        for (index_t c = 0; c < panels; ++c)
            std::copy_n(from + c * panel_rows * panel_columns, panel_columns, &rows_[feature][c * panel_columns]);
    }
    return rows_[feature].get();
}

void ActiveSet::correlations(const double *cross, const double *w, index_t stride, double *h) {
    std::vector<const double *> rows(active_.size());
    step_.resize(active_.size());
    for (std::size_t k = 0; k < active_.size(); ++k) {
        rows[k] = row(active_[k]);
        step_[k] = w[active_[k] * stride];
    }
    std::copy_n(cross, p_.features, h);
    subtract_rows(rows.data(), step_.data(), index_t(rows.size()), p_.features, h);
}

bool ActiveSet::append(index_t feature, double sign) {
    const index_t n = index_t(active_.size());
    const double own = p_.gram[panel_at(p_.features, feature, feature)], size = p_.sizes[feature];
    if (!(own > 8.0 * p_.rounding * size * size)) return false;  // so little left of a column is no more than rounding
    column_.resize(n + 1);
    const double *products = row(feature);
    for (index_t k = 0; k < n; ++k) column_[k] = products[active_[k]];
    if (!factor_.append(column_.data(), own + ridge_)) return false;
    active_.push_back(feature);
    sign_.push_back(sign);
    inside_[feature] = 1;
    return true;
}

void ActiveSet::remove(index_t place) {
    inside_[active_[place]] = 0;
    active_.erase(active_.begin() + place);
    sign_.erase(sign_.begin() + place);
    factor_.remove(place);
}

ActiveSet::Round ActiveSet::round(double lam, double ridge, const double *cross, double *w, index_t stride, double *h,
                                  double &work) {
    if (ridge != ridge_) {  // every diagonal changes: anew
        std::vector<index_t> before;
        before.swap(active_);
        sign_.clear();
        factor_.clear();
        ridge_ = ridge;
        for (index_t j : before) inside_[j] = 0;
    }
    for (index_t k = index_t(active_.size()); k-- > 0;)
        if (w[active_[k] * stride] == 0.0) remove(k);
    coming_.clear();
    for (index_t j = 0; j < p_.features; ++j) {
        const double v = w[j * stride];
        if (inside_[j]) continue;
        if (v != 0.0) {
            if (!append(j, v > 0.0 ? 1.0 : -1.0)) return Round::dependent;
            work += 0.5 * double(active_.size()) * double(active_.size());
            continue;
        }
        const double size = p_.positive ? h[j] : std::fabs(h[j]), limit = threshold(lam, j);
        if (size > exceeds * limit) coming_.emplace_back(size / limit, j);
    }
    const index_t room = std::max(few_at_once, index_t(active_.size()) / 2);
    if (index_t(coming_.size()) > room) {  // the worst ones: many of the others would leave again
        std::nth_element(coming_.begin(), coming_.begin() + room, coming_.end(), std::greater<>());
        coming_.resize(room);
    }
    for (const auto &[gauge, j] : coming_)
        if (append(j, h[j] > 0.0 ? 1.0 : -1.0)) work += 0.5 * double(active_.size()) * double(active_.size());
    bool moves = !coming_.empty();
    open_.resize(active_.size());
    for (std::size_t k = 0; k < active_.size(); ++k) {
        const index_t j = active_[k];
        sign_[k] = w[j * stride] == 0.0 ? sign_[k] : w[j * stride] > 0.0 ? 1.0 : -1.0;
        open_[k] = h[j] - ridge * w[j * stride] - sign_[k] * threshold(lam, j);
        moves |= std::fabs(open_[k]) > 1e-13 * threshold(lam, j);
    }
    if (!moves) {
        correlations(cross, w, stride, h);
        return Round::still;
    }
    while (!active_.empty()) {
        const index_t n = index_t(active_.size());
        step_ = open_;
        factor_.solve(step_.data());
        work += double(n) * double(n);
        double part = 1.0;
        for (index_t k = 0; k < n; ++k) {
            const double from = w[active_[k] * stride];
            if ((from + step_[k]) * sign_[k] <= 0.0) part = std::min(part, std::max(-from / step_[k], 0.0));
        }
        const bool whole = part >= 1.0;
        for (index_t k = n; k-- > 0;) {
            double &own = w[active_[k] * stride];
            const double to = own + part * step_[k];
            const bool crosses = (own + step_[k]) * sign_[k] <= 0.0 && std::max(-own / step_[k], 0.0) <= part;
            const bool nothing = whole && std::fabs(to) * p_.sizes[active_[k]] <= p_.least;
            own = to;
            if (!crosses && !nothing) continue;
            own = 0.0;
            open_.erase(open_.begin() + k);
            remove(k);
            work += 2.0 * double(n - k) * double(n - k);
        }
        if (whole) break;
        for (double &v : open_) v *= 1.0 - part;
    }
    correlations(cross, w, stride, h);
    work += double(active_.size()) * double(p_.features);
    return Round::moved;
}

}  // namespace tasksieve
