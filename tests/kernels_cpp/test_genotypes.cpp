#include "genotypes.hpp"

#include "check.hpp"

using namespace tasksieve;

namespace {

struct Calls {
    index_t rows = 53, variants = 300, tasks = 4;
    std::vector<index_t> offsets{0, 7, 7, 40, 53}, hole_of;
    std::vector<int> codes;
    std::vector<std::uint8_t> bytes;  // exactly as long as the calls: reading past the last is an error
    std::vector<double> means;
    check::Draw draw;

    Calls() : codes(rows * variants), bytes(variants * ((rows + 3) / 4)) {
        for (index_t j = 0; j < variants; ++j) {
            bool holes = false;
            for (index_t i = 0; i < rows; ++i) {
                int code = int(draw.below(4));
                if (code == 1 && j % 3 == 0) code = 2;
                holes |= code == 1;
                codes[j * rows + i] = code;
                bytes[j * ((rows + 3) / 4) + i / 4] |= std::uint8_t(code << (2 * (i % 4)));
            }
            hole_of.push_back(holes ? index_t(means.size()) / tasks : -1);
            for (index_t t = 0; holes && t < tasks; ++t) means.push_back(draw.uniform());
        }
    }

    Genotypes x() const { return {bytes.data(), (rows + 3) / 4, rows}; }
    Holes holes() const { return {hole_of.data(), means.data()}; }

    double value(index_t i, index_t j, index_t t) const {
        const int code = codes[j * rows + i];
        return code == 1 ? means[hole_of[j] * tasks + t] : code == 0 ? 2.0 : code == 2 ? 1.0 : 0.0;
    }
};

}  // namespace

TEST(genotype_products_match_sums) {
    Calls data;
    for (index_t k = 0; k < 12; ++k) {
        const index_t vectors = 1 + k / 2;
        const auto r = data.draw.normals(vectors * data.rows);
        std::vector<std::vector<double>> found(vectors, std::vector<double>(data.variants * data.tasks));
        std::vector<const double *> starts;
        std::vector<double *> outs;
        for (index_t m = 0; m < vectors; ++m) {
            starts.push_back(r.data() + m * data.rows);
            outs.push_back(found[m].data());
        }
        const index_t squares = vectors / 3;
        genotype_products(data.x(), data.holes(), nullptr, data.variants, starts.data(), squares, vectors,
                          data.offsets.data(), data.tasks, 3, outs.data(), k % 2 == 1);
        for (index_t m = 0; m < vectors; ++m)
            for (index_t j = 0; j < data.variants; ++j)
                for (index_t t = 0; t < data.tasks; ++t) {
                    double sum = 0.0;
                    for (index_t i = data.offsets[t]; i < data.offsets[t + 1]; ++i)
                        sum += std::pow(data.value(i, j, t), m < squares ? 2 : 1) * starts[m][i];
                    CHECK_CLOSE(found[m][j * data.tasks + t], sum);
                }
    }
}

TEST(genotype_columns_and_counts_match_calls) {
    Calls data;
    const std::vector<index_t> chosen{299, 0, 17};
    std::vector<double> columns(chosen.size() * data.rows);
    genotype_columns(data.x(), data.holes(), chosen.data(), 3, data.offsets.data(), data.tasks, 2, columns.data());
    std::vector<std::int32_t> counts(3 * 3 * data.tasks);
    genotype_counts(data.x(), chosen.data(), 3, data.offsets.data(), data.tasks, 2, counts.data());
    std::vector<index_t> holes(data.rows);
    genotype_row_holes(data.x(), chosen.data(), 3, 2, holes.data());
    for (size_t k = 0; k < chosen.size(); ++k)
        for (index_t t = 0; t < data.tasks; ++t) {
            std::int32_t found[4] = {0, 0, 0, 0};
            for (index_t i = data.offsets[t]; i < data.offsets[t + 1]; ++i) {
                CHECK(columns[k * data.rows + i] == data.value(i, chosen[k], t));
                ++found[data.codes[chosen[k] * data.rows + i]];
                holes[i] -= data.codes[chosen[k] * data.rows + i] == 1;
            }
            const std::int32_t *own = counts.data() + 3 * (k * data.tasks + t);
            CHECK(own[0] == found[0] && own[1] == found[2] && own[2] == found[1]);
        }
    for (index_t left : holes) CHECK(left == 0);
}

TEST(copied_genotypes_are_the_rows_asked_for) {
    Calls data;
    const std::vector<index_t> sources{5, -1, 299}, targets{2, 0, 1}, rows{52, -1, 3, 3, 0, 7};
    const std::vector<std::uint8_t> flips{0, 0, 1};
    std::vector<std::uint8_t> out(3 * 3, 0);
    copy_genotypes(data.x(), sources.data(), flips.data(), targets.data(), 3, rows.data(), 6, 4, out.data(), 3, 2);
    const int other[4] = {3, 1, 2, 0};
    for (size_t k = 0; k < sources.size(); ++k)
        for (size_t i = 0; i < rows.size(); ++i) {
            int code = sources[k] < 0 ? 1 : rows[i] < 0 ? 0 : data.codes[sources[k] * data.rows + rows[i]];
            if (rows[i] < 0) code = 0;
            else if (flips[k]) code = other[code];
            const size_t place = 4 + i;
            CHECK(((out[targets[k] * 3 + place / 4] >> (2 * (place % 4))) & 3) == code);
        }
}
