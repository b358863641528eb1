#include "sorted_norm.hpp"

#include <functional>

#include "check.hpp"

using namespace tasksieve;

namespace {

std::vector<double> norms(const std::vector<double> &rows, index_t tasks) {
    std::vector<double> out(rows.size() / tasks, 0.0);
    for (size_t i = 0; i < rows.size(); ++i) out[i / tasks] += rows[i] * rows[i];
    for (double &v : out) v = std::sqrt(v);
    return out;
}

// sum_k weights_k ||W||_[k], by the definition
double sorted_sum(const std::vector<double> &rows, index_t tasks, const std::vector<double> &weights) {
    auto size = norms(rows, tasks);
    std::sort(size.begin(), size.end(), std::greater<>());
    double sum = 0.0;
    for (size_t k = 0; k < size.size(); ++k) sum += weights[k] * size[k];
    return sum;
}

}  // namespace

TEST(value_and_prox_of_the_sorted_norm) {
    check::Draw draw;
    SortedNorm norm;  // one for all sizes: its buffers and its last order must not matter
    for (int k = 0; k < 300; ++k) {
        const index_t count = 1 + draw.below(12), tasks = 1 + draw.below(3);
        auto rows = draw.normals(count * tasks, 2.0);
        if (k % 4 == 0) std::copy_n(rows.begin(), tasks, rows.end() - tasks);  // rows that tie
        std::vector<double> weights(count), out(rows.size());
        for (double &w : weights) w = draw.uniform();
        std::sort(weights.begin(), weights.end(), std::greater<>());
        const double step = draw.uniform(0.1, 2.0);
        CHECK_CLOSE(norm.value(rows.data(), count, tasks, weights.data()), sorted_sum(rows, tasks, weights), 1e-10);
        norm.prox(rows.data(), count, tasks, weights.data(), step, false, out.data());
        // V is the prox of R exactly if (R - V) / step is in the dual ball and meets V at its norm
        std::vector<double> rest(rows.size());
        double inner = 0.0;
        for (size_t i = 0; i < rows.size(); ++i) {
            rest[i] = (rows[i] - out[i]) / step;
            inner += rest[i] * out[i];
        }
        CHECK(norm.polar(rest.data(), count, tasks, weights.data(), false) <= 1.0 + 1e-9);
        CHECK_CLOSE(inner, sorted_sum(out, tasks, weights), 1e-9);
    }
}

TEST(prox_onto_positive_rows) {
    check::Draw draw;
    SortedNorm norm;
    for (int k = 0; k < 100; ++k) {
        const index_t count = 6, tasks = 2;
        const auto rows = draw.normals(count * tasks, 2.0);
        const std::vector<double> weights{1.0, 0.9, 0.5, 0.5, 0.2, 0.0};
        auto kept = rows;
        for (double &v : kept) v = std::max(v, 0.0);
        std::vector<double> out(rows.size()), plain(rows.size());
        norm.prox(rows.data(), count, tasks, weights.data(), 0.7, true, out.data());
        norm.prox(kept.data(), count, tasks, weights.data(), 0.7, false, plain.data());
        for (size_t i = 0; i < rows.size(); ++i) {
            CHECK(out[i] >= 0.0);
            CHECK_CLOSE(out[i], plain[i], 1e-10);
        }
    }
}

TEST(polar_is_the_largest_ratio_of_cumulative_sums) {
    check::Draw draw;
    SortedNorm norm;
    for (int k = 0; k < 100; ++k) {
        const index_t count = 1 + draw.below(9), tasks = 1 + draw.below(3);
        const auto rows = draw.normals(count * tasks);
        std::vector<double> weights(count, 1.0);
        auto size = norms(rows, tasks);
        std::sort(size.begin(), size.end(), std::greater<>());
        double sum = 0.0, largest = 0.0;
        for (index_t j = 0; j < count; ++j) largest = std::max(largest, (sum += size[j]) / double(j + 1));
        CHECK_CLOSE(norm.polar(rows.data(), count, tasks, weights.data(), false), largest, 1e-10);
    }
}
