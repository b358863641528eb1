// The pass over the rows that ends a fit, in twice the precision (Ogita, Rump, Oishi 2005). Compiled without the freedoms
// that dual_coordinate.cpp has: here the order of the operations is the point.
#include "dual_coordinate.hpp"
#include "parallel.hpp"

namespace tasksieve {
namespace {

// sum + rest += a b, up to terms of the order of u^2.
TASKSIEVE_INLINE void add_product(double a, double b, double &sum, double &rest) {
    const double product = a * b, missing = std::fma(a, b, -product);
    const double next = sum + product, part = next - sum;
    rest += ((sum - (next - part)) + (product - part)) + missing;
    sum = next;
}

constexpr index_t LANES = 8;  // sums in flight, which hide the latency of the additions

template <class Rows, class W>
TASKSIEVE_INLINE void measure_range(Rows &rows, const GraphProblem &p, const W *wt, double intercept,
                                    const double *beta, index_t begin, index_t end, double *scores, double *sizes,
                                    double *sum, double *rest) {
    const index_t features = p.bias > 0 ? p.width - 1 : p.width;
    for (index_t i = begin; i < end; ++i) {
        if (p.row_of && i + 4 < end) rows.prefetch(p.row_of[i + 4]);
        rows.load(p.row_of ? p.row_of[i] : i);
        double high[LANES] = {}, low[LANES] = {}, size[LANES] = {};
        rows.each([&](index_t lane, index_t j, double x) TASKSIEVE_INLINE_LAMBDA {
            const double value = static_cast<double>(wt[j]);
            size[lane] += std::fabs(x * value);
            add_product(x, value, high[lane], low[lane]);
        });
        double score = intercept, lost = 0.0, total = std::fabs(intercept);
        for (index_t lane = 0; lane < LANES; ++lane) {
            add_product(1.0, high[lane], score, lost);
            lost += low[lane];
            total += size[lane];
        }
        scores[i] = score + lost;
        sizes[i] = total;
        if (!sum || beta[i] == 0.0) continue;
        const double b = beta[i];
        rows.each([&](index_t, index_t j, double x) TASKSIEVE_INLINE_LAMBDA { add_product(b, x, sum[j], rest[j]); });
        if (p.bias > 0) add_product(b, p.bias, sum[features], rest[features]);
    }
}

// Functions of their own for every kind of row, so that each is compiled for every processor.
#define TASKSIEVE_MEASURE(ROWS)                                                                                        \
    TASKSIEVE_MULTIVERSION void measure(ROWS &rows, const GraphProblem &p, const TableOf<ROWS> *wt, double intercept,  \
                                        const double *beta, index_t begin, index_t end, double *scores, double *sizes, \
                                        double *sum, double *rest) {                                                   \
        measure_range(rows, p, wt, intercept, beta, begin, end, scores, sizes, sum, rest);                             \
    }
#define TASKSIEVE_MEASURE_OF(T) TASKSIEVE_ROW_KINDS(TASKSIEVE_MEASURE, T)
TASKSIEVE_STORED_TYPES(TASKSIEVE_MEASURE_OF)
TASKSIEVE_MEASURE(StringRows)

constexpr index_t CHUNK = 8192;

}  // namespace

template <class W>
void measure_rows(const AnyRows &any, const GraphProblem &p, const W *w, const double *intercept, const double *beta,
                  int threads, double *scores, double *sizes, double *v) {
    std::visit(
        [&](const auto &source) {
            using Rows = std::decay_t<decltype(source)>;
            if constexpr (std::is_same_v<TableOf<Rows>, W>) {
                struct Piece {
                    index_t task, begin, end;
                };
                std::vector<Piece> pieces;
                for (index_t t = 0; t < p.tasks; ++t)
                    for (index_t b = p.offsets[t]; b < p.offsets[t + 1]; b += CHUNK)
                        pieces.push_back({t, b, std::min(p.offsets[t + 1], b + CHUNK)});
                const index_t count = static_cast<index_t>(pieces.size()), width = v ? p.width : 0;
                std::vector<double> sums(2 * count * width);  // of each piece: the sums, and what they have lost
                parallel_for(count, 1, threads, [&](index_t first, index_t last) {
                    auto rows = source;
                    for (index_t k = first; k < last; ++k) {
                        const Piece &piece = pieces[k];
                        double *sum = v ? sums.data() + 2 * k * width : nullptr;
                        measure(rows, p, w + piece.task * p.width, intercept[piece.task], beta, piece.begin, piece.end,
                                scores, sizes, sum, v ? sum + width : nullptr);
                    }
                });
                if (!v) return;
                std::fill(v, v + p.tasks * p.width, 0.0);
                std::vector<double> lost(p.tasks * p.width);
                for (index_t k = 0; k < count; ++k)
                    for (index_t j = 0; j < width; ++j) {
                        const index_t at = pieces[k].task * p.width + j;
                        add_product(1.0, sums[2 * k * width + j], v[at], lost[at]);
                        lost[at] += sums[(2 * k + 1) * width + j];
                    }
                for (index_t at = 0; at < p.tasks * p.width; ++at) v[at] += lost[at];
            }
        },
        any);
}
template void measure_rows(const AnyRows &, const GraphProblem &, const double *, const double *, const double *, int,
                           double *, double *, double *);
template void measure_rows(const AnyRows &, const GraphProblem &, const float *, const double *, const double *, int,
                           double *, double *, double *);

}  // namespace tasksieve
