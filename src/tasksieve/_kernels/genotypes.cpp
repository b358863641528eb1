#include "genotypes.hpp"

#include "genotype_bytes.hpp"
#include "panel.hpp"
#include "parallel.hpp"

namespace tasksieve {

namespace {

constexpr index_t column_grain = 256;  // columns one thread takes at a time

// A column as numbers, or their squares.
void decode(const Genotypes &x, const Holes &holes, index_t j, const index_t *offsets, index_t tasks, bool squares,
            double *target) {
    const double(*table)[4] = squares ? genotype_tables().squares : genotype_tables().copies;
    const std::uint8_t *bytes = x.column(j);
    const index_t whole = x.rows / 4, rest = x.rows % 4;
    for (index_t g = 0; g < whole; ++g) std::memcpy(target + 4 * g, table[bytes[g]], 4 * sizeof(double));
    if (rest) std::memcpy(target + 4 * whole, table[bytes[whole]], rest * sizeof(double));
    const index_t hole = holes.hole_of ? holes.hole_of[j] : -1;
    if (hole < 0) return;
    index_t t = 0;
    const index_t used = (x.rows + 3) / 4;
    for (index_t g = 0; g < used; g += 8)
        for (std::uint64_t left = missing(word(bytes + g, used - g)); left; left &= left - 1) {
            const index_t i = 4 * g + lowest_one(left) / 2;
            if (i >= x.rows) return;  // padding, which no reader should believe
            while (t + 1 < tasks && i >= offsets[t + 1]) ++t;
            const double mean = holes.means[hole * tasks + t];
            target[i] = squares ? mean * mean : mean;
        }
}

// Counts of one column in one task: 2 copies, 1 copy, missing.
TASKSIEVE_INLINE void count_span(const std::uint8_t *bytes, index_t lo, index_t hi, std::int32_t *out) {
    index_t one = 0, none = 0, absent = 0;
    const index_t last = (hi + 3) / 4;
    for (index_t g = lo / 4; g < last; g += 8) {
        const std::uint64_t calls = word(bytes + g, last - g);
        std::uint64_t valid = low_bits;  // rows of this task
        if (4 * g < lo) valid &= ~std::uint64_t(0) << (2 * (lo - 4 * g));
        if (4 * g + 32 > hi) valid &= ~std::uint64_t(0) >> (2 * (4 * g + 32 - hi));
        const std::uint64_t first = calls & valid, second = (calls >> 1) & valid;
        one += count_ones(second & ~first);
        none += count_ones(second & first);
        absent += count_ones(first & ~second);
    }
    out[0] = std::int32_t(hi - lo - one - none - absent);
    out[1] = std::int32_t(one);
    out[2] = std::int32_t(absent);
}

TASKSIEVE_MULTIVERSION void count_columns(const Genotypes &x, const index_t *columns, index_t begin, index_t end,
                                          const index_t *offsets, index_t tasks, std::int32_t *out) {
    for (index_t k = begin; k < end; ++k) {
        const std::uint8_t *bytes = x.column(columns ? columns[k] : k);
        for (index_t t = 0; t < tasks; ++t) {
            std::int32_t *counts = out + 3 * (k * tasks + t);
            if (offsets[t + 1] > offsets[t])
                count_span(bytes, offsets[t], offsets[t + 1], counts);
            else
                std::fill(counts, counts + 3, 0);
        }
    }
}

}  // namespace

void genotype_shared_products(const Genotypes &x, const Holes &holes, const index_t *columns, index_t count,
                              const double *r, index_t vectors, bool squares, int threads, double *out) {
    const Panel panel(r, x.rows, vectors);
    const index_t offsets[2] = {0, x.rows};
    const index_t block = std::max<index_t>(16, 65536 / std::max<index_t>(x.rows, 1));
    parallel_for(count, block, threads, [&](index_t begin, index_t end) {
        std::vector<const double *> addresses(end - begin);
        std::vector<double> buffer((end - begin) * x.rows);
        for (index_t k = begin; k < end; ++k) {
            double *target = buffer.data() + (k - begin) * x.rows;
            decode(x, holes, columns ? columns[k] : k, offsets, 1, squares, target);
            addresses[k - begin] = target;
        }
        panel.products(addresses.data(), end - begin, out + begin * vectors);
    });
}

void genotype_columns(const Genotypes &x, const Holes &holes, const index_t *columns, index_t count,
                      const index_t *offsets, index_t tasks, int threads, double *out) {
    parallel_for(count, 16, threads, [&](index_t begin, index_t end) {
        for (index_t k = begin; k < end; ++k)
            decode(x, holes, columns ? columns[k] : k, offsets, tasks, false, out + k * x.rows);
    });
}

void genotype_counts(const Genotypes &x, const index_t *columns, index_t count, const index_t *offsets, index_t tasks,
                     int threads, std::int32_t *out) {
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        count_columns(x, columns, begin, end, offsets, tasks, out);
    });
}

void genotype_row_holes(const Genotypes &x, const index_t *columns, index_t count, int threads, index_t *out) {
    const index_t used = (x.rows + 3) / 4;
    std::fill(out, out + x.rows, 0);
    parallel_for(used, 256, threads, [&](index_t begin, index_t end) {  // a stretch of rows in all columns
        for (index_t k = 0; k < count; ++k) {
            const std::uint8_t *bytes = x.column(columns ? columns[k] : k);
            for (index_t g = begin; g < end; g += 8)
                for (std::uint64_t left = missing(word(bytes + g, end - g)); left; left &= left - 1) {
                    const index_t i = 4 * g + lowest_one(left) / 2;
                    if (i < x.rows) ++out[i];
                }
        }
    });
}

void copy_genotypes(const Genotypes &x, const index_t *sources, const std::uint8_t *flips, const index_t *targets,
                    index_t count, const index_t *rows, index_t n_rows, index_t first, std::uint8_t *out,
                    index_t stride, int threads) {
    const index_t used = (x.rows + 3) / 4, absent = 4 * used;
    std::vector<std::uint32_t> places(n_rows);
    for (index_t i = 0; i < n_rows; ++i) places[i] = std::uint32_t(rows[i] < 0 ? absent : rows[i]);
    parallel_for(count, 16, threads, [&](index_t begin, index_t end) {
        std::vector<std::uint8_t> codes(absent + 1);
        for (index_t k = begin; k < end; ++k) {
            if (sources[k] < 0) {
                std::fill(codes.begin(), codes.end(), std::uint8_t(missing_code));
            } else {
                const std::uint8_t *bytes = x.column(sources[k]);
                const std::uint32_t *table = flips && flips[k] ? genotype_tables().flipped : genotype_tables().codes;
                for (index_t g = 0; g < used; ++g) std::memcpy(codes.data() + 4 * g, &table[bytes[g]], 4);
            }
            codes[absent] = 0;  // 00 changes nothing in the target
            std::uint8_t *target = out + targets[k] * stride + first / 4;
            index_t i = 0;
            for (; i + 4 <= n_rows; i += 4, ++target)
                *target |= std::uint8_t(codes[places[i]] | codes[places[i + 1]] << 2 | codes[places[i + 2]] << 4 |
                                        codes[places[i + 3]] << 6);
            for (int shift = 0; i < n_rows; ++i, shift += 2) *target |= std::uint8_t(codes[places[i]] << shift);
        }
    });
}

}  // namespace tasksieve
