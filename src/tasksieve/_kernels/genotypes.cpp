#include "genotypes.hpp"

#include <cstring>

#include "panel.hpp"
#include "parallel.hpp"

namespace tasksieve {

namespace {

constexpr std::uint64_t low_bits = 0x5555555555555555u;
constexpr index_t column_grain = 256;  // columns one thread takes at a time
constexpr unsigned missing_code = 1;

// Four numbers, in one register or in two: a vector wider than the machine's would live in memory.
#if defined(TASKSIEVE_GNU) && defined(__x86_64__)
typedef double Four __attribute__((vector_size(32)));

TASKSIEVE_INLINE Four zero() { return Four{0.0, 0.0, 0.0, 0.0}; }
TASKSIEVE_INLINE Four load(const double *from) {
    Four found;
    std::memcpy(&found, from, sizeof found);
    return found;
}
TASKSIEVE_INLINE void add_product(Four &sum, const Four &a, const Four &b) { sum += a * b; }
TASKSIEVE_INLINE double total(const Four &sum) { return (sum[0] + sum[2]) + (sum[1] + sum[3]); }
#else
#if defined(TASKSIEVE_GNU)
typedef double Two __attribute__((vector_size(16)));
#else
struct Two {
    double values[2];
    double operator[](int k) const { return values[k]; }
};
inline Two operator+(const Two &a, const Two &b) { return {{a[0] + b[0], a[1] + b[1]}}; }
inline Two operator*(const Two &a, const Two &b) { return {{a[0] * b[0], a[1] * b[1]}}; }
inline Two &operator+=(Two &a, const Two &b) { return a = a + b; }
#endif
struct Four {
    Two first, second;
};

TASKSIEVE_INLINE Four zero() { return {Two{0.0, 0.0}, Two{0.0, 0.0}}; }
TASKSIEVE_INLINE Four load(const double *from) {
    Four found;
    std::memcpy(&found.first, from, sizeof(Two));
    std::memcpy(&found.second, from + 2, sizeof(Two));
    return found;
}
TASKSIEVE_INLINE void add_product(Four &sum, const Four &a, const Four &b) {
    sum.first += a.first * b.first;
    sum.second += a.second * b.second;
}
TASKSIEVE_INLINE double total(const Four &sum) {
    const Two both = sum.first + sum.second;
    return both[0] + both[1];
}
#endif

// The four calls of every byte, as copies (missing: 0) and as their squares: 8 KB each, which stay in the first cache.
struct Tables {
    alignas(32) double copies[256][4], squares[256][4];
    std::uint32_t codes[256], flipped[256];  // the codes themselves, a byte each

    Tables() {
        const double value[4] = {2.0, 0.0, 1.0, 0.0};
        const std::uint32_t other[4] = {3, missing_code, 2, 0};
        for (int byte = 0; byte < 256; ++byte) {
            std::uint8_t plain[4], turned[4];
            for (int k = 0; k < 4; ++k) {
                const int code = (byte >> (2 * k)) & 3;
                copies[byte][k] = value[code];
                squares[byte][k] = value[code] * value[code];
                plain[k] = std::uint8_t(code);
                turned[k] = std::uint8_t(other[code]);
            }
            std::memcpy(&codes[byte], plain, 4);
            std::memcpy(&flipped[byte], turned, 4);
        }
    }
};

const Tables &tables() {
    static const Tables made;
    return made;
}

// Up to 8 bytes as one word, the first of them lowest.
TASKSIEVE_INLINE std::uint64_t word(const std::uint8_t *from, index_t bytes) {
    std::uint64_t found = 0;
    if (bytes >= 8) {
        for (int k = 0; k < 8; ++k) found |= std::uint64_t(from[k]) << (8 * k);
        return found;
    }
    for (int k = 0; k < int(bytes); ++k) found |= std::uint64_t(from[k]) << (8 * k);
    return found;
}

// The low bit of every missing call.
TASKSIEVE_INLINE std::uint64_t missing(std::uint64_t calls) { return calls & ~(calls >> 1) & low_bits; }

// The bytes that hold a task's rows, and where its part of a padded vector starts. A byte that two tasks share belongs to
// both: each has zeros where the other has rows.
struct Span {
    index_t byte, count, start;  // first byte, bytes, first byte's place among all
};

std::vector<Span> spans(const index_t *offsets, index_t tasks) {
    std::vector<Span> found(tasks);
    index_t start = 0;
    for (index_t t = 0; t < tasks; ++t) {
        const index_t lo = offsets[t], hi = offsets[t + 1];
        const index_t count = hi > lo ? (hi + 3) / 4 - lo / 4 : 0;
        found[t] = {lo / 4, count, start};
        start += count;
    }
    return found;
}

// A vector as the spans need it.
std::vector<double> padded(const double *r, const std::vector<Span> &cut, const index_t *offsets) {
    const index_t total = cut.empty() ? 0 : cut.back().start + cut.back().count;
    std::vector<double> out(4 * total, 0.0);
    for (size_t t = 0; t < cut.size(); ++t)
        for (index_t i = offsets[t]; i < offsets[t + 1]; ++i) out[4 * (cut[t].start - cut[t].byte) + i] = r[i];
    return out;
}

// Products of C columns with V vectors over the bytes of a task: C V sums of four in flight.
template <int C, int V>
TASKSIEVE_INLINE void span_products(const double (*table)[4], const std::uint8_t *const *bytes, const double *const *r,
                                    index_t count, double (*sums)[4]) {
    Four sum[C][V];
    for (int c = 0; c < C; ++c)
        for (int m = 0; m < V; ++m) sum[c][m] = zero();
    for (index_t g = 0; g < count; ++g)
        for (int c = 0; c < C; ++c) {
            const Four calls = load(table[bytes[c][g]]);
            for (int m = 0; m < V; ++m) add_product(sum[c][m], calls, load(r[m] + 4 * g));
        }
    for (int c = 0; c < C; ++c)
        for (int m = 0; m < V; ++m) sums[c][m] = total(sum[c][m]);
}

// sums[m] = sum of r[m] over the missing calls of a column in a task.
TASKSIEVE_INLINE void missing_sums(const std::uint8_t *bytes, const double *const *r, index_t vectors, index_t count,
                                   double *sums) {
    std::fill(sums, sums + vectors, 0.0);
    for (index_t g = 0; g < count; g += 8)
        for (std::uint64_t left = missing(word(bytes + g, count - g)); left; left &= left - 1) {
            const index_t i = 4 * g + lowest_one(left) / 2;
            for (index_t m = 0; m < vectors; ++m) sums[m] += r[m][i];
        }
}

// Everything a range of columns needs to be multiplied by up to four vectors, all with squares or none.
struct Block {
    const Genotypes &x;
    const Holes &holes;
    const index_t *columns;
    const std::vector<Span> &cut;
    const double *const *r;  // padded
    bool squares;
    double *const *out;
};

template <int C, int V>
TASKSIEVE_INLINE void block_columns(const Block &block, index_t k, index_t end) {
    const double(*table)[4] = block.squares ? tables().squares : tables().copies;
    const index_t tasks = index_t(block.cut.size());
    for (; k < end; k += C) {
        const std::uint8_t *start[C];
        index_t hole[C], place[C];
        for (int c = 0; c < C; ++c) {  // the last of a number that C does not divide is its own neighbour
            place[c] = std::min(k + c, end - 1);
            const index_t j = block.columns ? block.columns[place[c]] : place[c];
            start[c] = block.x.column(j);
            hole[c] = block.holes.hole_of ? block.holes.hole_of[j] : -1;
        }
        for (index_t t = 0; t < tasks; ++t) {
            const Span &span = block.cut[t];
            const std::uint8_t *bytes[C];
            const double *r[V];
            for (int c = 0; c < C; ++c) bytes[c] = start[c] + span.byte;
            for (int m = 0; m < V; ++m) r[m] = block.r[m] + 4 * span.start;
            double sums[C][4];
            span_products<C, V>(table, bytes, r, span.count, sums);
            for (int c = 0; c < C; ++c) {
                if (hole[c] >= 0) {
                    double absent[V];
                    missing_sums(bytes[c], r, V, span.count, absent);
                    const double mean = block.holes.means[hole[c] * tasks + t], part = block.squares ? mean * mean : mean;
                    for (int m = 0; m < V; ++m) sums[c][m] += part * absent[m];
                }
                for (int m = 0; m < V; ++m) block.out[m][place[c] * tasks + t] = sums[c][m];
            }
        }
    }
}

// Functions of their own, so that each is compiled for every processor. One vector: eight columns share its loads.
TASKSIEVE_MULTIVERSION void block_of_one(const Block &block, index_t begin, index_t end) {
    block_columns<8, 1>(block, begin, end);
}
TASKSIEVE_MULTIVERSION void block_of_two(const Block &block, index_t begin, index_t end) {
    block_columns<4, 2>(block, begin, end);
}
TASKSIEVE_MULTIVERSION void block_of_three(const Block &block, index_t begin, index_t end) {
    block_columns<2, 3>(block, begin, end);
}
TASKSIEVE_MULTIVERSION void block_of_four(const Block &block, index_t begin, index_t end) {
    block_columns<2, 4>(block, begin, end);
}

void multiply(const Block &block, index_t vectors, index_t begin, index_t end) {
    switch (vectors) {
        case 1: block_of_one(block, begin, end); break;
        case 2: block_of_two(block, begin, end); break;
        case 3: block_of_three(block, begin, end); break;
        default: block_of_four(block, begin, end); break;
    }
}

// A column as numbers, or their squares.
void decode(const Genotypes &x, const Holes &holes, index_t j, const index_t *offsets, index_t tasks, bool squares,
            double *target) {
    const double(*table)[4] = squares ? tables().squares : tables().copies;
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

void genotype_products(const Genotypes &x, const Holes &holes, const index_t *columns, index_t count,
                       const double *const *r, index_t squares, index_t vectors, const index_t *offsets, index_t tasks,
                       int threads, double *const *out) {
    const std::vector<Span> cut = spans(offsets, tasks);
    std::vector<std::vector<double>> own;
    std::vector<const double *> starts;
    for (index_t m = 0; m < vectors; ++m) {
        own.push_back(padded(r[m], cut, offsets));
        starts.push_back(own.back().data());
    }
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        for (index_t m = 0; m < vectors;) {
            const index_t limit = m < squares ? squares : vectors, width = std::min<index_t>(4, limit - m);
            multiply({x, holes, columns, cut, starts.data() + m, m < squares, out + m}, width, begin, end);
            m += width;
        }
    });
}

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
                const std::uint32_t *table = flips && flips[k] ? tables().flipped : tables().codes;
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
