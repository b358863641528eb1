#include "genotype_bytes.hpp"
#include "genotypes.hpp"
#include "parallel.hpp"

// Picking bytes has no word in portable C++.
#if defined(TASKSIEVE_GNU) && defined(__x86_64__) && !defined(_WIN32)
#define TASKSIEVE_AVX2 __attribute__((target("avx2,fma")))
#include <immintrin.h>
#endif

namespace tasksieve {

namespace {

constexpr index_t column_grain = 256;  // columns one thread takes at a time
constexpr int most_columns = 8, most_vectors = 4;  // that are multiplied at once

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
    const index_t bytes = cut.empty() ? 0 : cut.back().start + cut.back().count;
    std::vector<double> out(4 * bytes, 0.0);
    for (size_t t = 0; t < cut.size(); ++t)
        for (index_t i = offsets[t]; i < offsets[t + 1]; ++i) out[4 * (cut[t].start - cut[t].byte) + i] = r[i];
    return out;
}

// A few columns that are multiplied by a few vectors at once, all with squares or none.
struct Group {
    const Span *cut;
    index_t tasks;
    const double *r[most_vectors];  // padded
    bool squares, holes;  // holes: some column has missing calls
    const std::uint8_t *column[most_columns];
    const double *means[most_columns];  // for missing calls, an entry a task; zeros in a column that has none
    double *out[most_columns][most_vectors];

    double fill(int c, index_t t) const { return squares ? means[c][t] * means[c][t] : means[c][t]; }
};

// -- in portable C++: a byte's four calls from a table, or two at a time from the column's own, which has its fill value -

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

TASKSIEVE_INLINE Two load(const double *from) {
    Two found;
    std::memcpy(&found, from, sizeof found);
    return found;
}

template <int C, int V, bool Holes>
void table_products(const Group &group) {
    const double(*table)[4] = group.squares ? genotype_tables().squares : genotype_tables().copies;
    double pairs[C][16][2];
    const double values[4] = {group.squares ? 4.0 : 2.0, 0.0, 1.0, 0.0};
    for (int c = 0; Holes && c < C; ++c)
        for (int calls = 0; calls < 16; ++calls) {
            pairs[c][calls][0] = values[calls & 3];
            pairs[c][calls][1] = values[calls >> 2];
        }
    for (index_t t = 0; t < group.tasks; ++t) {
        const Span &span = group.cut[t];
        const std::uint8_t *bytes[C];
        const double *r[V];
        Two low[C][V], high[C][V];
        for (int m = 0; m < V; ++m) r[m] = group.r[m] + 4 * span.start;
        for (int c = 0; c < C; ++c) {
            bytes[c] = group.column[c] + span.byte;
            const double fill = group.fill(c, t);
            for (int other = 0; Holes && other < 4; ++other) {
                pairs[c][4 * other + missing_code][0] = fill;
                pairs[c][4 * missing_code + other][1] = fill;
            }
            for (int m = 0; m < V; ++m) low[c][m] = high[c][m] = Two{0.0, 0.0};
        }
        for (index_t g = 0; g < span.count; ++g)
            for (int c = 0; c < C; ++c) {
                const int byte = bytes[c][g];
                const Two first = load(Holes ? pairs[c][byte & 15] : table[byte]);
                const Two second = load(Holes ? pairs[c][byte >> 4] : table[byte] + 2);
                for (int m = 0; m < V; ++m) {
                    low[c][m] += first * load(r[m] + 4 * g);
                    high[c][m] += second * load(r[m] + 4 * g + 2);
                }
            }
        for (int c = 0; c < C; ++c)
            for (int m = 0; m < V; ++m) {
                const Two both = low[c][m] + high[c][m];
                group.out[c][m][t] = both[0] + both[1];
            }
    }
}

#if defined(TASKSIEVE_AVX2)
// -- AVX2: a byte's four calls are bytes picked from 16, of which eight are the fill value ------------------------------

// Where each byte of the four numbers is found: 0 to 7 the fill value; 8, 9 the upper bytes of what two copies are; 10,
// 11 those of what one copy is; 128: zero.
struct Picks {
    alignas(32) std::uint8_t of[256][32];

    Picks() {
        std::memset(of, 128, sizeof of);
        for (int byte = 0; byte < 256; ++byte)
            for (int k = 0; k < 4; ++k) {
                std::uint8_t *number = of[byte] + 8 * k;
                const int code = (byte >> (2 * k)) & 3;
                if (code == int(missing_code))
                    for (int i = 0; i < 8; ++i) number[i] = std::uint8_t(i);
                else if (code != 3)
                    for (int i = 0; i < 2; ++i) number[6 + i] = std::uint8_t((code == 0 ? 8 : 10) + i);
            }
    }
};

const Picks &picks() {
    static const Picks made;
    return made;
}

TASKSIEVE_AVX2 inline double total(__m256d sum) {
    const __m128d both = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1));
    return _mm_cvtsd_f64(_mm_add_sd(both, _mm_unpackhi_pd(both, both)));
}

template <int C, int V, bool Holes>
TASKSIEVE_AVX2 void picked_products(const Group &group) {
    const double(*table)[4] = group.squares ? genotype_tables().squares : genotype_tables().copies;
    const std::uint8_t(*from)[32] = picks().of;
    const std::int64_t upper = group.squares ? 0x3FF04010 : 0x3FF04000;  // of 1 and 4, or of 1 and 2
    for (index_t t = 0; t < group.tasks; ++t) {
        const Span &span = group.cut[t];
        const std::uint8_t *bytes[C];
        const double *r[V];
        __m256i values[C];
        __m256d sum[C][V];
        for (int m = 0; m < V; ++m) r[m] = group.r[m] + 4 * span.start;
        for (int c = 0; c < C; ++c) {
            bytes[c] = group.column[c] + span.byte;
            if (Holes) {
                const __m128i fill = _mm_castpd_si128(_mm_set_sd(group.fill(c, t)));
                values[c] = _mm256_broadcastsi128_si256(_mm_unpacklo_epi64(fill, _mm_cvtsi64_si128(upper)));
            }
            for (int m = 0; m < V; ++m) sum[c][m] = _mm256_setzero_pd();
        }
        for (index_t g = 0; g < span.count; ++g)
            for (int c = 0; c < C; ++c) {
                const int byte = bytes[c][g];
                __m256d calls;
                if (Holes) {
                    const __m256i where = _mm256_load_si256(reinterpret_cast<const __m256i *>(from[byte]));
                    calls = _mm256_castsi256_pd(_mm256_shuffle_epi8(values[c], where));
                } else {
                    calls = _mm256_load_pd(table[byte]);
                }
                for (int m = 0; m < V; ++m)
                    sum[c][m] = _mm256_fmadd_pd(calls, _mm256_loadu_pd(r[m] + 4 * g), sum[c][m]);
            }
        for (int c = 0; c < C; ++c)
            for (int m = 0; m < V; ++m) group.out[c][m][t] = total(sum[c][m]);
    }
}
#endif

// How C columns are multiplied by V vectors.
using Multiply = void (*)(const Group &);

template <int C, int V, bool Holes>
Multiply best(bool portable) {
#if defined(TASKSIEVE_AVX2)
    if (!portable && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return picked_products<C, V, Holes>;
#endif
    (void)portable;
    return table_products<C, V, Holes>;
}

struct Way {
    int columns;  // at once: as many as have their sums in registers
    Multiply multiply[2];  // columns without missing calls, and with them
};

template <int C, int V>
Way both(bool portable) {
    return {C, {best<C, V, false>(portable), best<C, V, true>(portable)}};
}

Way way(index_t vectors, bool portable) {
    switch (vectors) {
        case 1: return both<8, 1>(portable);
        case 2: return both<4, 2>(portable);
        case 3: return both<2, 3>(portable);
        default: return both<2, 4>(portable);
    }
}

}  // namespace

void genotype_products(const Genotypes &x, const Holes &holes, const index_t *columns, index_t count,
                       const double *const *r, index_t squares, index_t vectors, const index_t *offsets, index_t tasks,
                       int threads, double *const *out, bool portable) {
    const std::vector<Span> cut = spans(offsets, tasks);
    std::vector<std::vector<double>> own;
    for (index_t m = 0; m < vectors; ++m) own.push_back(padded(r[m], cut, offsets));
    const std::vector<double> none(tasks, 0.0);
    const auto multiply = [&](index_t first, index_t width, index_t begin, index_t end) {
        const Way chosen = way(width, portable);
        Group group{};
        group.cut = cut.data(), group.tasks = tasks, group.squares = first < squares;
        for (index_t m = 0; m < width; ++m) group.r[m] = own[first + m].data();
        for (index_t k = begin; k < end; k += chosen.columns) {
            group.holes = false;
            for (int c = 0; c < chosen.columns; ++c) {  // the last of a number that C does not divide is its own neighbour
                const index_t place = std::min(k + c, end - 1), j = columns ? columns[place] : place;
                const index_t hole = holes.hole_of ? holes.hole_of[j] : -1;
                group.column[c] = x.column(j);
                group.means[c] = hole >= 0 ? holes.means + hole * tasks : none.data();
                group.holes |= hole >= 0;
                for (index_t m = 0; m < width; ++m) group.out[c][m] = out[first + m] + place * tasks;
            }
            chosen.multiply[group.holes](group);
        }
    };
    parallel_for(count, column_grain, threads, [&](index_t begin, index_t end) {
        for (index_t m = 0; m < vectors;) {
            const index_t limit = m < squares ? squares : vectors, width = std::min<index_t>(most_vectors, limit - m);
            multiply(m, width, begin, end);
            m += width;
        }
    });
}

}  // namespace tasksieve
