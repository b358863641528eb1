#include "coordinate.hpp"

#include "check.hpp"

using namespace tasksieve;

namespace {

double norm(const std::vector<double> &v) {
    double sum = 0.0;
    for (double x : v) sum += x * x;
    return std::sqrt(sum);
}

double softened(double v, double threshold) { return std::copysign(std::max(std::fabs(v) - threshold, 0.0), v); }

}  // namespace

TEST(a_solved_row_meets_its_optimality_conditions) {
    check::Draw draw;
    for (int k = 0; k < 500; ++k) {
        const index_t tasks = 1 + draw.below(6);
        std::vector<double> c = draw.normals(tasks, 3.0), h(tasks), w(tasks), given = c;
        for (double &v : h) v = k % 7 == 0 ? 2.0 : draw.uniform(0.1, 4.0);
        if (k % 5 == 0) h[0] = 0.0;
        const double group = k % 3 ? draw.uniform(0.0, 3.0) : 0.0, l1 = k % 2 ? draw.uniform() : 0.0;
        const double ridge = k % 4 ? 0.0 : 0.3;
        const bool positive = k % 6 == 0;
        solve_row(c.data(), h.data(), tasks, group, l1, ridge, positive, w.data());
        const double size = norm(w);
        if (size == 0.0) {  // what is left of c after the l1 part is within reach of the group norm
            double rest = 0.0;
            for (index_t t = 0; t < tasks; ++t) {
                if (h[t] + ridge == 0.0) continue;
                const double v = positive ? std::max(given[t] - l1, 0.0) : softened(given[t], l1);
                rest += v * v;
            }
            CHECK(std::sqrt(rest) <= group * (1.0 + 1e-12));
            continue;
        }
        for (index_t t = 0; t < tasks; ++t) {
            if (h[t] + ridge == 0.0) {
                CHECK(w[t] == 0.0);
                continue;
            }
            if (positive) CHECK(w[t] >= 0.0);
            // the slope of everything but the l1 part
            const double slope = (h[t] + ridge) * w[t] - given[t] + group * w[t] / size;
            if (w[t] != 0.0)
                CHECK(std::fabs(slope + std::copysign(l1, w[t])) <= 1e-9);
            else
                CHECK(positive ? slope >= -l1 - 1e-9 : std::fabs(slope) <= l1 + 1e-9);
        }
    }
}

TEST(the_gauge_of_a_row_is_where_its_ball_begins) {
    check::Draw draw;
    for (int k = 0; k < 500; ++k) {
        const index_t tasks = 1 + draw.below(6);
        const auto m = draw.normals(tasks, 2.0);
        const double group = k % 3 ? draw.uniform(0.1, 2.0) : 0.0, l1 = k % 2 || group == 0.0 ? draw.uniform(0.1, 1.0) : 0.0;
        const double v = row_gauge(m.data(), tasks, group, l1, false);
        double rest = 0.0;  // ||soft(m, v l1)|| = v group
        for (double x : m) rest += std::pow(softened(x, v * l1), 2);
        CHECK_CLOSE(std::sqrt(rest), v * group, 1e-9);
    }
}

TEST(rows_of_other_kinds_attain_their_gauge) {
    check::Draw draw;
    for (int k = 0; k < 600; ++k) {
        const int kind = 1 + k % 3;
        const index_t tasks = 1 + draw.below(6);
        std::vector<double> c = draw.normals(tasks, 3.0), h(tasks), w(tasks), given = c, slope(tasks);
        for (double &v : h) v = kind == ROW_STACK ? 1.7 : draw.uniform(0.01, 4.0);
        if (k % 5 == 0) h[0] = 0.0;
        const double group = draw.uniform(0.3, 3.0), l1 = draw.uniform(0.2, 1.5);
        const bool positive = k % 4 == 0;
        solve_row(c.data(), h.data(), tasks, group, l1, 0.0, positive, w.data(), kind);
        double inner = 0.0;
        for (index_t t = 0; t < tasks; ++t) {
            if (h[t] == 0.0) {
                CHECK(w[t] == 0.0);
                given[t] = 0.0;
            }
            if (positive) CHECK(w[t] >= 0.0);
            slope[t] = given[t] - h[t] * w[t];
            inner += slope[t] * w[t];
        }
        CHECK(row_gauge(slope.data(), tasks, group, l1, positive, kind) <= 1.0 + 1e-9);
        CHECK_CLOSE(inner, row_norm_of_kind(kind, w.data(), tasks, tasks, group, l1), 1e-8);
    }
}

TEST(blocks_of_columns_are_solved_together) {
    check::Draw draw;
    const index_t rows = 24, tasks = 2, count = 7;
    const std::vector<index_t> offsets{0, 11, 24}, columns{0, 1, 2, 3, 4, 5, 6}, starts{0, 1, 4, 7};
    const auto x = draw.normals(rows * count), y = draw.normals(rows, 2.0);
    for (int kind : {int(ROW_SUM), int(ROW_STACK)}) {
        // the sum of squared norms of a block is more than its largest eigenvalue
        std::vector<double> h(count * tasks), group(3, 1.2), l1(3, 0.3), w(count * tasks, 0.0), state = y;
        for (index_t b = 0; b < 3; ++b) {
            double bound = 0.0;
            for (index_t k = starts[b]; k < starts[b + 1]; ++k)
                for (index_t i = 0; i < rows; ++i) bound += x[k * rows + i] * x[k * rows + i];
            std::fill(h.begin() + starts[b] * tasks, h.begin() + starts[b + 1] * tasks, bound);
        }
        RowProblem p;
        p.x = x.data();
        p.rows = rows;
        p.offsets = offsets.data();
        p.tasks = tasks;
        p.columns = columns.data();
        p.count = count;
        p.h = h.data();
        p.kind = kind;
        p.group = group.data();
        p.l1 = l1.data();
        p.starts = starts.data();
        p.n_blocks = 3;
        CHECK(coordinate_descent(p, w.data(), state.data(), 20000, 1e-9).gap <= 1e-9);
    }
}

TEST(descent_ends_with_the_gap_it_reports) {
    check::Draw draw;
    const index_t rows = 30, tasks = 3, features = 12;
    const std::vector<index_t> offsets{0, 9, 18, 30}, columns{7, 0, 3, 11, 5, 2};
    const index_t count = columns.size();
    const auto x = draw.normals(rows * features), y = draw.normals(rows, 2.0);
    std::vector<double> h(count * tasks), group(count, 1.5), l1(count, 0.2), w(count * tasks, 0.0), state = y;
    auto entry = [&](index_t k, index_t i) { return x[columns[k] * rows + i]; };
    for (index_t k = 0; k < count; ++k)
        for (index_t t = 0; t < tasks; ++t)
            for (index_t i = offsets[t]; i < offsets[t + 1]; ++i) h[k * tasks + t] += entry(k, i) * entry(k, i);
    RowProblem p;
    p.x = x.data();
    p.rows = rows;
    p.offsets = offsets.data();
    p.tasks = tasks;
    p.columns = columns.data();
    p.count = count;
    p.h = h.data();
    p.group = group.data();
    p.l1 = l1.data();
    const RowReport report = coordinate_descent(p, w.data(), state.data(), 10000, 1e-10);
    CHECK(report.gap <= 1e-10);
    // residual and objective, written out; every row is optimal given the others
    double objective = 0.0;
    for (index_t t = 0; t < tasks; ++t)
        for (index_t i = offsets[t]; i < offsets[t + 1]; ++i) {
            double residual = y[i];
            for (index_t k = 0; k < count; ++k) residual -= entry(k, i) * w[k * tasks + t];
            CHECK_CLOSE(state[i], residual, 1e-10);
            objective += 0.5 * residual * residual;
        }
    for (index_t k = 0; k < count; ++k) {
        std::vector<double> c(tasks), best(tasks), row(w.begin() + k * tasks, w.begin() + (k + 1) * tasks);
        for (index_t t = 0; t < tasks; ++t) {
            c[t] = h[k * tasks + t] * row[t];
            for (index_t i = offsets[t]; i < offsets[t + 1]; ++i) c[t] += entry(k, i) * state[i];
            objective += l1[k] * std::fabs(row[t]);
        }
        objective += group[k] * norm(row);
        solve_row(c.data(), h.data() + k * tasks, tasks, group[k], l1[k], 0.0, false, best.data());
        for (index_t t = 0; t < tasks; ++t) CHECK_CLOSE(best[t], row[t], 1e-4);
    }
    CHECK_CLOSE(report.objective, objective, 1e-10);
}
