// Anderson acceleration of a descent whose state is affine in its weights.
#pragma once
#include "vectors.hpp"

namespace tasksieve {

// Solves the small symmetric system of the extrapolation by elimination with pivoting; false if singular.
inline bool solve_small(std::vector<double> a, index_t n, std::vector<double> &x) {
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

// The last `depth` steps are combined; the state (a residual, or X'residual) is extrapolated along with the weights, so
// that no product with X is needed. A candidate is kept only if it lowers the objective.
template <class Descent>
class Anderson {
  public:
    static constexpr index_t depth = 5;

    void push(Descent &d) {
        if (count_ == index_t(weights_.size())) {
            weights_.emplace_back();
            states_.emplace_back();
        }
        weights_[count_].assign(d.weights(), d.weights() + d.weight_size());
        states_[count_].assign(d.state(), d.state() + d.state_size());
        ++count_;
    }
    bool ready() const { return count_ == depth + 1; }
    void restart() { count_ = 0; }

    void extrapolate(Descent &d, bool positive) {
        const index_t n = d.weight_size(), size = d.state_size();
        std::vector<double> gram(depth * depth), x;
        difference_.resize(depth * n);
        for (index_t i = 0; i < depth; ++i)
            for (index_t e = 0; e < n; ++e) difference_[i * n + e] = weights_[i + 1][e] - weights_[i][e];
        double trace = 0.0;
        for (index_t i = 0; i < depth; ++i)
            for (index_t j = 0; j <= i; ++j) {
                gram[i * depth + j] = gram[j * depth + i] = dot(&difference_[i * n], &difference_[j * n], n);
                if (i == j) trace += gram[i * depth + i];
            }
        for (index_t i = 0; i < depth; ++i) gram[i * depth + i] += 1e-10 * trace;
        double total = 0.0;
        if (trace > 0.0 && solve_small(gram, depth, x))
            for (double v : x) total += v;
        if (std::isfinite(total) && total != 0.0) {
            const double before = d.objective();
            // The newest entry is where the descent stands: it serves as the way back.
            std::fill(d.weights(), d.weights() + n, 0.0);
            std::fill(d.state(), d.state() + size, 0.0);
            for (index_t i = 0; i < depth; ++i) {
                axpy(x[i] / total, weights_[i + 1].data(), n, d.weights());
                axpy(x[i] / total, states_[i + 1].data(), size, d.state());
            }
            bool keep = true;
            for (index_t e = 0; e < n && keep; ++e) keep = std::isfinite(d.weights()[e]);
            for (index_t e = 0; positive && e < n && keep; ++e) keep = d.weights()[e] >= 0.0;
            if (!keep || !(d.objective() < before)) {
                std::copy(weights_[depth].begin(), weights_[depth].end(), d.weights());
                std::copy(states_[depth].begin(), states_[depth].end(), d.state());
            }
        }
        restart();
    }

  private:
    std::vector<std::vector<double>> weights_, states_;
    std::vector<double> difference_;
    index_t count_ = 0;
};

}  // namespace tasksieve
