#include "nodewise.hpp"

#include <functional>
#include <limits>

#include "blas.hpp"
#include "growing_factor.hpp"
#include "parallel.hpp"
#include "vectors.hpp"

namespace tasksieve {

namespace {

constexpr index_t width = 64;            // targets whose products with all columns are taken together
constexpr double exceeds = 1.0 + 1e-11;  // of its threshold, inside a working set
constexpr double settled = 1e-11;        // of its threshold: how far off the correlation of a coefficient may be
constexpr index_t few_at_once = 16, most_inside = 100;
constexpr double worthwhile = 0.98;     // of the eta before: a value that leaves more is the last
constexpr double nothing_left = 1e-10;  // of a column: a residual so short has no direction

TASKSIEVE_MULTIVERSION double largest_but(const double *h, index_t n, index_t left_out) {
    double most = 0.0;
#pragma omp simd reduction(max : most)
    for (index_t k = 0; k < left_out; ++k) most = std::max(most, std::fabs(h[k]));
#pragma omp simd reduction(max : most)
    for (index_t k = left_out + 1; k < n; ++k) most = std::max(most, std::fabs(h[k]));
    return most;
}

// One target on its way down the strengths.
class Node {
  public:
    Node(const NodewiseProblem &problem, index_t target, double start, double *kept, double *strength)
        : p_(problem), target_(target), kept_(kept), strength_(strength), lam_(start), before_(start),
          z_(column(target), column(target) + problem.rows) {
        std::fill_n(kept_, p_.rows, 0.0);
        *strength_ = start;
        finished_ = dot(z_.data(), z_.data(), p_.rows) == 0.0;
    }

    bool finished() const { return finished_; }
    const double *residual() const { return z_.data(); }

    // h: the products of all columns with the residual. Afterwards either finished, or the residual has changed.
    void look(const double *h) {
        const double most = largest_but(h, p_.features, target_);
        ++round_;
        const double bound = lam_ * (1.0 + p_.tolerance);
        if (most <= bound || stuck_ || round_ >= p_.rounds) {
            judge(h, most);
            if (finished_) return;
        }
        choose(h);
        stuck_ = !solve();
    }

  private:
    const double *column(index_t k) const { return p_.x + k * p_.rows; }

    // The value is solved: is its residual better than the one that is kept, and is there another value?
    void judge(const double *h, double most) {
        const double length = std::sqrt(dot(z_.data(), z_.data(), p_.rows));
        if (!(length > nothing_left) || !(h[target_] > 0.0)) {
            finished_ = true;
            return;
        }
        const double eta = most / length, tau = length / h[target_];
        if (!reached_ && eta <= p_.target) {
            reached_ = true;
            least_ = tau;
        }
        const bool allowed = !reached_ || tau <= p_.growth * least_;
        if (allowed && (best_ < 0.0 || eta < best_)) {
            best_ = eta;
            std::copy(z_.begin(), z_.end(), kept_);
            *strength_ = lam_;
        }
        const bool slow = reached_ && eta > worthwhile * last_;
        last_ = eta;
        before_ = lam_;
        do {  // values at which nothing comes in have the same residual
            lam_ *= p_.ratio;
            ++value_;
        } while (value_ < p_.values && active_.empty() && most <= lam_);
        finished_ = !allowed || slow || value_ >= p_.values;
        round_ = 0;
        stuck_ = false;
    }

    // Columns that could get a coefficient at this strength: by the strong rule, and not too many of them.
    void choose(const double *h) {
        double limit = std::max(2.0 * lam_ - before_, 0.25 * lam_);
        if (round_ > 0) limit = std::min(limit, 0.9 * lam_);
        coming_.clear();
        for (index_t k = 0; k < p_.features; ++k)
            if (std::fabs(h[k]) > limit && k != target_) coming_.emplace_back(std::fabs(h[k]), k);
        const index_t room = 2 * std::min(p_.rows, p_.features) + few_at_once;
        if (index_t(coming_.size()) > room) {
            std::nth_element(coming_.begin(), coming_.begin() + room, coming_.end(), std::greater<>());
            coming_.resize(room);
        }
        outside_.clear();
        for (const auto &[size, k] : coming_)
            if (std::find(active_.begin(), active_.end(), k) == active_.end()) outside_.push_back(k);
        std::sort(outside_.begin(), outside_.end());
    }

    bool append(index_t k, double sign) {
        products_.resize(active_.size() + 1);
        for (std::size_t i = 0; i < active_.size(); ++i) products_[i] = dot(column(active_[i]), column(k), p_.rows);
        if (!factor_.append(products_.data(), dot(column(k), column(k), p_.rows))) return false;
        active_.push_back(k);
        g_.push_back(0.0);
        sign_.push_back(sign);
        return true;
    }

    void remove(index_t place) {
        factor_.remove(place);
        outside_.push_back(active_[place]);
        active_.erase(active_.begin() + place);
        g_.erase(g_.begin() + place);
        sign_.erase(sign_.begin() + place);
        open_.erase(open_.begin() + place);
    }

    // The Lasso on the working set, by the coefficients that are not zero and their signs (as in active_set.hpp).
    // Whether anything has changed.
    bool solve() {
        bool changed = false;
        for (index_t inside = 0; inside < most_inside; ++inside) {
            coming_.clear();
            for (index_t k : outside_) {
                const double h = dot(column(k), z_.data(), p_.rows);
                if (std::fabs(h) > exceeds * lam_) coming_.emplace_back(h, k);
            }
            const index_t room = std::max(few_at_once, index_t(active_.size()) / 2);
            if (index_t(coming_.size()) > room) {  // the largest ones: many of the others would leave again
                std::nth_element(coming_.begin(), coming_.begin() + room, coming_.end(),
                                 [](const auto &a, const auto &b) { return std::fabs(a.first) > std::fabs(b.first); });
                coming_.resize(room);
            }
            bool moves = false;
            for (const auto &[h, k] : coming_) {
                if (!append(k, h > 0.0 ? 1.0 : -1.0)) continue;
                outside_.erase(std::find(outside_.begin(), outside_.end(), k));
                moves = true;
            }
            open_.resize(active_.size());
            for (std::size_t i = 0; i < active_.size(); ++i) {
                open_[i] = dot(column(active_[i]), z_.data(), p_.rows) - sign_[i] * lam_;
                moves |= std::fabs(open_[i]) > settled * lam_;
            }
            if (!moves) break;
            changed = true;
            step();
            std::copy_n(column(target_), p_.rows, z_.begin());
            for (std::size_t i = 0; i < active_.size(); ++i) axpy(-g_[i], column(active_[i]), p_.rows, z_.data());
        }
        return changed;
    }

    // To the minimum with these signs; a coefficient that would change its sign on the way leaves.
    void step() {
        while (!active_.empty()) {
            const index_t n = index_t(active_.size());
            move_ = open_;
            factor_.solve(move_.data());
            double part = 1.0;
            for (index_t i = 0; i < n; ++i)
                if ((g_[i] + move_[i]) * sign_[i] <= 0.0) part = std::min(part, std::max(-g_[i] / move_[i], 0.0));
            for (index_t i = n; i-- > 0;) {
                const double to = g_[i] + part * move_[i];
                const bool crosses = (g_[i] + move_[i]) * sign_[i] <= 0.0 && std::max(-g_[i] / move_[i], 0.0) <= part;
                g_[i] = to;
                if (crosses) remove(i);
            }
            if (part >= 1.0) return;
            for (double &v : open_) v *= 1.0 - part;
        }
    }

    const NodewiseProblem &p_;
    index_t target_;
    double *kept_, *strength_;
    double lam_, before_;
    std::vector<double> z_;
    GrowingFactor factor_;  // of the active columns
    std::vector<index_t> active_, outside_;
    std::vector<double> g_, sign_, open_, move_, products_;
    std::vector<std::pair<double, index_t>> coming_;
    index_t value_ = 0, round_ = 0;
    bool finished_ = false, reached_ = false, stuck_ = false;
    double best_ = -1.0, least_ = 0.0, last_ = std::numeric_limits<double>::infinity();
};

}  // namespace

void nodewise(const NodewiseProblem &problem, const index_t *targets, const double *start, index_t count, double *z,
              double *strengths) {
    const index_t rows = problem.rows, features = problem.features;
    parallel_for(count, width, problem.threads, [&](index_t begin, index_t end) {
        std::vector<Node> nodes;
        nodes.reserve(end - begin);
        for (index_t i = begin; i < end; ++i)
            nodes.emplace_back(problem, targets[i], start[i], z + i * rows, strengths + i);
        std::vector<Node *> open;
        for (Node &node : nodes)
            if (!node.finished()) open.push_back(&node);
        std::vector<double> residuals(open.size() * rows), products(open.size() * features);
        while (!open.empty()) {
            const index_t many = index_t(open.size());
            for (index_t i = 0; i < many; ++i) std::copy_n(open[i]->residual(), rows, &residuals[i * rows]);
            gemm('T', 'N', features, many, rows, problem.x, rows, residuals.data(), rows, 0.0, products.data(), features);
            for (index_t i = 0; i < many; ++i) open[i]->look(&products[i * features]);
            open.erase(std::remove_if(open.begin(), open.end(), [](const Node *node) { return node->finished(); }),
                       open.end());
        }
    });
}

}  // namespace tasksieve
