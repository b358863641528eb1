#include "anchors.hpp"

#include <limits>

#include "check.hpp"

using namespace tasksieve;

namespace {

// Correlations of past vectors with columns of known norms, and a combination of them.
struct Example {
    check::Draw draw;
    index_t features = 40, tasks, n_anchors;
    std::vector<std::vector<float>> anchors;
    std::vector<const float *> pointers;
    std::vector<double> coef, remainder, group, l1;
    std::vector<float> norms;

    Example(index_t tasks, index_t n_anchors) : tasks(tasks), n_anchors(n_anchors) {
        for (index_t m = 0; m < n_anchors; ++m) anchors.push_back(draw.normals<float>(features * tasks));
        for (const auto &anchor : anchors) pointers.push_back(anchor.data());
        coef = draw.normals(n_anchors * tasks, 0.7);
        for (index_t t = 0; t < tasks; ++t) remainder.push_back(draw.uniform(0.0, 0.1));
        for (index_t j = 0; j < features; ++j) {
            group.push_back(draw.uniform(0.5, 3.0));
            l1.push_back(draw.uniform(0.0, 0.5));
            for (index_t t = 0; t < tasks; ++t) norms.push_back(static_cast<float>(draw.uniform(0.1, 1.0)));
        }
    }

    Anchored problem(const std::vector<double> &coef, const std::vector<double> &remainder, double radius,
                     std::vector<double> &estimate, std::vector<double> &upper) const {
        Anchored is;
        is.anchors = pointers.data();
        is.n_anchors = n_anchors;
        is.tasks = tasks;
        is.coef = coef.data();
        is.norms = norms.data();
        is.remainder = remainder.data();
        is.radius = radius;
        is.group = group.data();
        is.estimate = estimate.data();
        is.upper = upper.data();
        return is;
    }

    // ||soft(b + change, l1_j)|| / group_j for one feature
    double ratio(index_t j, const std::vector<double> &change, bool with_l1, bool positive) const {
        double squares = 0.0;
        for (index_t t = 0; t < tasks; ++t) {
            double b = change[t];
            for (index_t m = 0; m < n_anchors; ++m) b += coef[m * tasks + t] * double(anchors[m][j * tasks + t]);
            const double size = (positive ? std::max(b, 0.0) : std::fabs(b)) - (with_l1 ? l1[j] : 0.0);
            if (size > 0.0) squares += size * size;
        }
        return std::sqrt(squares) / group[j];
    }

    void verify(double radius, bool with_l1, bool positive, int threads) {
        std::vector<double> estimate(features), upper(features), moments(3 * features), chosen_upper(3), skip(3);
        Anchored is = problem(coef, remainder, radius, estimate, upper);
        is.l1 = with_l1 ? l1.data() : nullptr;
        is.positive = positive;
        is.moments = moments.data();
        anchored_ratios(is, features, threads);
        const std::vector<index_t> chosen{39, 0, 17};
        is.chosen = chosen.data();
        is.estimate = skip.data();
        is.upper = chosen_upper.data();
        is.moments = nullptr;
        anchored_ratios(is, 3, threads);
        for (int k = 0; k < 3; ++k) CHECK_CLOSE(chosen_upper[k], upper[chosen[k]], 1e-9);
        for (index_t j = 0; j < features; ++j) {
            CHECK_CLOSE(estimate[j], ratio(j, std::vector<double>(tasks, 0.0), with_l1, positive), 1e-9);
            // no vector of the ball, with no remainder within its bounds, comes nearer to the threshold
            for (int trial = 0; trial < 50; ++trial) {
                std::vector<double> u = draw.normals(tasks), change(tasks);
                double length = 0.0;
                for (double v : u) length += v * v;
                for (index_t t = 0; t < tasks; ++t) {
                    const double norm = norms[j * tasks + t], sign = trial % 2 ? 1.0 : draw.uniform(-1.0, 1.0);
                    change[t] = norm * (radius * u[t] / std::sqrt(length) + sign * remainder[t]);
                }
                CHECK(ratio(j, change, with_l1, positive) <= upper[j] * (1.0 + 1e-12));
            }
        }
    }
};

}  // namespace

TEST(anchored_bounds_hold_over_the_ball) {
    for (index_t tasks : {1, 2, 5})
        for (index_t anchors : {1, 3, 8})
            for (double radius : {0.0, 0.4})
                for (int form = 0; form < 4; ++form) Example(tasks, anchors).verify(radius, form & 1, form & 2, 1 + form % 2);
}

TEST(bounds_from_moments_are_no_smaller_than_what_they_bound) {
    Example is(3, 2);
    const double alpha = 0.6, beta = 0.5, radius = 0.2;
    const index_t n = is.features, tasks = is.tasks;
    std::vector<double> estimate(n), upper(n), moments(3 * n), first(3 * n), longest(n), unit(2 * tasks, 0.0), none(tasks, 0.0);
    std::fill_n(unit.begin(), tasks, 1.0);  // the first anchor itself
    auto ratios = [&](const std::vector<double> &coef, std::vector<double> &of) {
        Anchored plain = is.problem(coef, none, 0.0, estimate, upper);
        plain.moments = of.data();
        anchored_ratios(plain, n, 1);
    };
    ratios(is.coef, moments);
    ratios(unit, first);
    for (index_t j = 0; j < n; ++j)
        longest[j] = *std::max_element(is.norms.begin() + j * tasks, is.norms.begin() + (j + 1) * tasks);
    moment_bounds(moments.data(), first.data(), longest.data(), is.group.data(), n, alpha, beta, 1.0, radius, 0.0,
                  upper.data());
    for (index_t j = 0; j < n; ++j) {
        double squares = 0.0;
        for (index_t t = 0; t < tasks; ++t) {
            double b = beta * double(is.anchors[0][j * tasks + t]);
            for (index_t m = 0; m < 2; ++m) b += alpha * is.coef[m * tasks + t] * double(is.anchors[m][j * tasks + t]);
            squares += b * b;
        }
        CHECK_CLOSE(upper[j], (std::sqrt(squares) + radius * longest[j]) / is.group[j], 1e-9);
    }
}

TEST(largest_magnitude_sees_what_is_no_number) {
    check::Draw draw;
    auto values = draw.normals(200000);
    values[150000] = -9.0;
    CHECK(largest_magnitude(values.data(), values.size(), 3) == 9.0);
    values[70000] = std::numeric_limits<double>::quiet_NaN();
    CHECK(std::isnan(largest_magnitude(values.data(), values.size(), 3)));
    CHECK(largest_magnitude(values.data(), 0, 3) == 0.0);
}
