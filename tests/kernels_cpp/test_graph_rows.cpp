#include "graph_rows.hpp"

#include <stdexcept>

#include "check.hpp"
#include "checks.hpp"
#include "losses.hpp"

using namespace tasksieve;

TEST(every_kind_of_row_reads_the_same_numbers) {
    check::Draw draw;
    const index_t n = 600, d = 130;
    std::vector<double> x(n * d, 0.0), value;
    std::vector<std::int32_t> index, start{0};
    for (index_t i = 0; i < n; ++i) {
        for (index_t j = 0; j < d; ++j)
            if (draw.below(20) == 0) {
                value.push_back(x[i * d + j] = draw.normal());
                index.push_back(static_cast<std::int32_t>(j));
            }
        start.push_back(static_cast<std::int32_t>(index.size()));
    }
    DenseRows<double> dense;
    dense.x = x.data();
    dense.rows = n;
    dense.features = d;
    SparseRows<double, std::int32_t> sparse;
    sparse.matrix = {value.data(), index.data(), start.data(), n};
    sparse.rows = n;
    sparse.features = d;
    const AnyRows packed = packed_if_sparse(dense, 3);
    CHECK(std::holds_alternative<BlockRows<double>>(packed));
    const auto w = draw.normals(d);
    std::vector<double> squares(n);
    for (const AnyRows &any : {AnyRows(dense), packed, AnyRows(sparse)}) {
        row_squares(any, 2, squares.data());
        std::visit(
            [&](auto rows) {
                for (index_t i = 0; i < n; ++i) {
                    std::vector<double> sum(d, 1.0);
                    double inner = 0.0, square = 0.0;
                    rows.load(i);
                    if constexpr (!std::is_same_v<decltype(rows), StringRows>) rows.add(0.5, sum.data());
                    for (index_t j = 0; j < d; ++j) {
                        inner += x[i * d + j] * w[j];
                        square += x[i * d + j] * x[i * d + j];
                        CHECK_CLOSE(sum[j], 1.0 + 0.5 * x[i * d + j]);
                    }
                    CHECK_CLOSE(rows.dot(w.data()), inner);
                    CHECK_CLOSE(squares[i], square);
                }
            },
            any);
    }
}

TEST(hashed_features_need_room) {
    const index_t n = 9000, length = 6;
    check::Draw draw;
    std::vector<std::uint8_t> text(n * length), letters(256, 255);
    for (int c = 0; c < 4; ++c) letters[c] = static_cast<std::uint8_t>(c);
    for (auto &c : text) c = static_cast<std::uint8_t>(draw.below(5));  // 4 is no letter
    const std::vector<index_t> offset{0, length << 2, 0, 0};
    const std::vector<float> weight{1.0f, 0.5f, 0.25f};
    StringRows rows;
    rows.text = text.data();
    rows.rows = n;
    rows.length = length;
    rows.features = 512;
    rows.letters = letters.data();
    rows.degree = 3;
    rows.direct = 1;
    rows.offset = offset.data();
    rows.weight = weight.data();
    rows.prepare();
    std::vector<index_t> counts(n), start(n + 1, 0);
    count_hashed(rows, 3, counts.data());
    for (index_t r = 0; r < n; ++r) start[r + 1] = start[r] + counts[r];
    std::vector<std::int32_t> index(start[n], -1);
    std::vector<double> value(start[n]);
    hash_rows(rows, 3, start.data(), index.data(), value.data());
    CHECK(all_inside(index.data(), start[n], 512));
    index_t full = 0;
    while (counts[full] == 0) ++full;
    for (index_t r = full + 1; r <= n; ++r) --start[r];  // one place too few
    bool refused = false;
    try {
        hash_rows(rows, 3, start.data(), index.data(), value.data());
    } catch (const std::invalid_argument &) {
        refused = true;
    }
    CHECK(refused);
}

TEST(whole_arrays_are_looked_at) {
    for (index_t at : {0, 17, 99}) {
        std::vector<std::int32_t> narrow(100, 4);
        std::vector<std::int64_t> wide(100, 4);
        CHECK(all_inside(narrow.data(), 100, 5) && all_inside(wide.data(), 100, 5));
        CHECK(!all_inside(narrow.data(), 100, 4) && !all_inside(wide.data(), 100, 0));
        narrow[at] = -1;
        wide[at] = std::int64_t(1) << 40;
        CHECK(!all_inside(narrow.data(), 100, 5) && !all_inside(wide.data(), 100, 5));
        CHECK(all_inside(wide.data(), 100, (std::int64_t(1) << 40) + 1));
        std::vector<double> values(100, 1e308);
        CHECK(all_finite(values.data(), 100));
        values[at] = at ? INFINITY : NAN;
        CHECK(!all_finite(values.data(), 100));
    }
    CHECK(all_inside(static_cast<std::int32_t *>(nullptr), 0, 0));
}

TEST(logistic_formulas_do_not_overflow) {
    for (double z : {-1e4, -30.0, -1.0, 0.0, 2.0, 50.0, 1e4}) {
        CHECK(std::isfinite(log1p_exp(z)) && sigmoid(z) >= 0.0 && sigmoid(z) <= 1.0);
        CHECK_CLOSE(sigmoid(z) + sigmoid(-z), 1.0);
        CHECK_CLOSE(log1p_exp(z) - log1p_exp(-z), z);
        CHECK_CLOSE(logistic_derivative(z, 1.0), -logistic_derivative(-z, -1.0));
    }
    const double step = 1e-6, z = 0.3;
    CHECK_CLOSE(logistic_derivative(z, -1.0), (log1p_exp(z + step) - log1p_exp(z - step)) / (2 * step), 1e-8);
    double classes[] = {1000.0, 999.0, -1000.0};
    softmax(classes, 3);
    CHECK_CLOSE(classes[0], 1.0 / (1.0 + std::exp(-1.0)));
    CHECK(classes[2] == 0.0);
}
