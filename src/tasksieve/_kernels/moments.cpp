#include "moments.hpp"

#include "blas.hpp"
#include "gram_path.hpp"
#include "parallel.hpp"

namespace tasksieve {

namespace {

constexpr index_t piece = 1024;  // rows of a column that stay in the first cache beside those of a few labels

TASKSIEVE_MULTIVERSION double dot(const double *a, const double *b, index_t n) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (index_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

TASKSIEVE_MULTIVERSION void four_dots(const double *a, const double *b, index_t stride, index_t n, double *out) {
    const double *b1 = b + stride, *b2 = b1 + stride, *b3 = b2 + stride;
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (index_t i = 0; i < n; ++i) {
        s0 += a[i] * b[i];
        s1 += a[i] * b1[i];
        s2 += a[i] * b2[i];
        s3 += a[i] * b3[i];
    }
    out[0] = s0;
    out[1] = s1;
    out[2] = s2;
    out[3] = s3;
}

// out[k * step] += <a, b_k> for `count` columns b_k.
void add_dots(const double *a, const double *b, index_t stride, index_t count, index_t n, double *out, index_t step) {
    index_t k = 0;
    for (; k + 4 <= count; k += 4) {
        double found[4];
        four_dots(a, b + k * stride, stride, n, found);
        for (index_t e = 0; e < 4; ++e) out[(k + e) * step] += found[e];
    }
    for (; k < count; ++k) out[k * step] += dot(a, b + k * stride, n);
}

double gamma(double operations) { return 1.01 * 0x1p-53 * operations; }

}  // namespace

void add_products(const ProductSums &is, int threads) {
    for (index_t m = 0; m < is.matrices; ++m) {
        const index_t low = is.matrices == 1 ? 0 : is.offsets[m], high = is.matrices == 1 ? is.rows : is.offsets[m + 1];
        const index_t first = is.matrices == 1 ? 0 : m, tasks = is.matrices == 1 ? is.columns : 1;
        const double *z = is.z;
        double *cross = is.cross + first * is.features, *beside = is.beside + m * is.n_nuisance * is.features;
        for (index_t t = 0; t < tasks; ++t) {
            const double *y = is.y + t * is.rows + low;
            is.labels[first + t] += dot(y, y, high - low);
            add_dots(y, z + low, is.rows, is.n_nuisance, high - low, is.explained + (first + t) * is.n_nuisance, 1);
        }
        for (index_t a = 0; a < is.n_nuisance; ++a)
            add_dots(z + a * is.rows + low, z + low, is.rows, is.n_nuisance, high - low,
                     is.nuisance + (m * is.n_nuisance + a) * is.n_nuisance, 1);
        // Many labels are a matrix product. The threads share out features: sums do not depend on their number.
        const bool many = tasks > 8;
        if (many && high > low)
            gemm('T', 'N', is.features, tasks, high - low, is.x + low, is.rows, is.y + low, is.rows, 1.0, cross,
                 is.features);
        const double work = double(high - low) * double(is.features) * double(is.n_nuisance + (many ? 0 : tasks));
        const int used = work > 2e5 ? threads : 1;
        parallel_for(is.features, used > 1 ? 16 : is.features, used, [&](index_t begin, index_t end) {
            for (index_t from = low; from < high; from += piece) {
                const index_t n = std::min(piece, high - from);
                for (index_t j = begin; j < end; ++j) {
                    const double *x = is.x + j * is.rows + from;
                    if (!many) add_dots(x, is.y + from, is.rows, tasks, n, cross + j, is.features);
                    add_dots(x, z + from, is.rows, is.n_nuisance, n, beside + j, is.features);
                }
            }
        });
    }
}

bool take_out_constant(const Elimination &is, double limit, int threads) {
    bool ordinary = true;
    const auto length = [&](double square) {
        const double found = square < 0.0 ? 0.0 : std::sqrt(square);
        if (found != 0.0 && !(found < limit && found > 1.0 / limit)) ordinary = false;
        return found;
    };
    const index_t d = is.features, k = is.n_nuisance;
    for (index_t m = 0; m < is.matrices; ++m) {
        const double *gram = is.gram + m * panel_cells(d);
        for (index_t j = 0; j < d; ++j) is.sizes[m * d + j] = length(gram[panel_at(d, j, j)]);
        for (index_t a = 0; a < k; ++a) is.nuisance_sizes[m * k + a] = length(is.nuisance[(m * k + a) * k + a]);
    }
    for (index_t t = 0; t < is.tasks; ++t) is.label_sizes[t] = length(is.labels[t]);
    if (k != 1) return ordinary;
    const auto inverse = [&](index_t m) { return is.nuisance[m] > 0.0 ? 1.0 / is.nuisance[m] : 0.0; };
    for (index_t m = 0; m < is.matrices; ++m) {
        const double by = inverse(m);
        for (index_t j = 0; j < d; ++j) is.coefficients[m * d + j] = is.beside[m * d + j] * by;
    }
    subtract_outer(is.beside, is.coefficients, is.matrices, 1, d, threads, is.gram);
    for (index_t t = 0; t < is.tasks; ++t) {
        const index_t m = is.matrices == 1 ? 0 : t;
        is.fit[t] = is.explained[t] * inverse(m);
        for (index_t j = 0; j < d; ++j) is.cross[t * d + j] -= is.explained[t] * is.coefficients[m * d + j];
        const double left = is.labels[t] - is.explained[t] * is.fit[t];
        is.labels[t] = left < 0.0 ? 0.0 : left;
    }
    return ordinary;
}

void storing_loss(const StoringLoss &is) {
    index_t most = 0;
    for (index_t v = 0; v < is.n_values; ++v) most = std::max(most, is.counts[v]);
    const double terms = gamma(double(most + 2 * is.n_nuisance + 16)) + is.sums;
    const index_t size = is.n_values * is.tasks;
    for (index_t v = 0; v < is.n_values; ++v) {
        const double each = gamma(1.0) * double(2 * (is.counts[v] + 2) + 8), width = each * each;
        double added = 0.0, lost = 0.0;
        for (index_t t = 0; t < is.tasks; ++t) {
            const index_t at = v * is.tasks + t;
            // One nuisance column is independent: the best coefficient is a quotient of sums, with their errors.
            double away = is.n_nuisance ? 2.0 * terms * (is.label_sizes[t] + is.facts[3 * size + at]) : 0.0;
            if (is.intercept) {  // where large numbers cancel it was summed in twice the precision
                const double rest = std::fabs(is.facts[size + at]), root = std::sqrt(is.totals[t]);
                added += 0.5 * (root * rest) * (root * rest);
                away += root * (rest + gamma(2.0) * rest + width * is.facts[2 * size + at]);
            }
            lost += 0.5 * away * away * (1.0 + gamma(16.0));
        }
        is.added[v] = added;
        is.lost[v] = lost;
    }
}

}  // namespace tasksieve
