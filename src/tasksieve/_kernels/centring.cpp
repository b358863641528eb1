#include "centring.hpp"

#include "parallel.hpp"

namespace tasksieve {

namespace {

// The weighted mean, corrected once for its own rounding, within the range of the rows that count.
TASKSIEVE_MULTIVERSION double mean_of(const double *x, const double *w, index_t n) {
    double total = 0.0, sum = 0.0;
#pragma omp simd reduction(+ : total, sum)
    for (index_t i = 0; i < n; ++i) {
        const double s = w[i] * w[i];
        total += s;
        sum += s * x[i];
    }
    if (!(total > 0.0)) return 0.0;
    const double first = sum / total;
    double rest = 0.0, away = 0.0;
#pragma omp simd reduction(+ : rest, away)
    for (index_t i = 0; i < n; ++i) {
        const double s = w[i] * w[i], from = x[i] - first;
        rest += s * from;
        away += s * std::fabs(from);
    }
    const double mean = first + rest / total;
    // Half of what is away from the mean is above it and half below: then it is within the range, rounded or not.
    if (away > 1e-9 * total * std::fabs(first) && away < HUGE_VAL) return mean;
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (index_t i = 0; i < n; ++i) {
        if (!(w[i] > 0.0)) continue;
        low = std::min(low, x[i]);
        high = std::max(high, x[i]);
    }
    return std::min(std::max(mean, low), high);
}

TASKSIEVE_MULTIVERSION double centre_segment(const double *x, double shift, const double *w, const double *basis,
                                             index_t stride, index_t n_basis, index_t n, double *out, double *inner) {
    double before = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : before)
    for (index_t i = 0; i < n; ++i) {
        out[i] = w[i] * (x[i] - shift);
        before += out[i] * out[i];
    }
    for (index_t b = 0; b < n_basis; ++b) inner[b] = 0.0;
    if (n_basis == 0) return before;
    // Where little of a column is left, the rounding of the first projection is not small beside it: project again.
    for (int sweep = 0; sweep < 2; ++sweep) {
        for (index_t b = 0; b < n_basis; ++b) {
            const double *unit = basis + b * stride;
            double product = 0.0;
#pragma omp simd reduction(+ : product)
            for (index_t i = 0; i < n; ++i) product += unit[i] * out[i];
            for (index_t i = 0; i < n; ++i) out[i] -= product * unit[i];
            inner[b] += product;
        }
        squares = 0.0;
#pragma omp simd reduction(+ : squares)
        for (index_t i = 0; i < n; ++i) squares += out[i] * out[i];
        if (squares > 1e-4 * before) break;
    }
    return squares;
}

}  // namespace

void centre(const double *x, index_t rows, const index_t *offsets, index_t tasks, bool shared, index_t count,
            const double *w, const double *basis, index_t n_basis, bool shifted, int threads, double *out,
            double *squares, double *shifts, double *loadings) {
    const index_t samples = offsets[tasks];
    parallel_for(count, 32, threads, [&](index_t begin, index_t end) {
        std::vector<double> inner(n_basis);
        for (index_t k = begin; k < end; ++k) {
            for (index_t t = 0; t < tasks; ++t) {
                const index_t lo = offsets[t], n = offsets[t + 1] - lo, at = k * tasks + t;
                const double *column = x + k * rows + (shared ? 0 : lo);
                shifts[at] = shifted ? mean_of(column, w + lo, n) : 0.0;
                squares[at] = centre_segment(column, shifts[at], w + lo, basis + lo, samples, n_basis, n,
                                             out + k * samples + lo, inner.data());
                for (index_t b = 0; b < n_basis; ++b) loadings[b * count * tasks + at] = inner[b];
            }
        }
    });
}

namespace {

// A sum and what it lost (Ogita, Rump and Oishi 2005).
struct Twofold {
    double sum = 0.0, low = 0.0;

    void add(double value, double missing) {
        const double next = sum + value, part = next - sum;
        low += ((sum - (next - part)) + (value - part)) + missing;
        sum = next;
    }
    void add_product(double a, double b) {
        const double product = a * b;
        add(product, std::fma(a, b, -product));
    }
    double total() const { return sum + low; }
    double rest() const { return (sum - total()) + low; }
};

}  // namespace

void exact_products(const double *a, const double *b, const index_t *offsets, index_t tasks, double *out,
                    double *rest) {
    for (index_t t = 0; t < tasks; ++t) {
        Twofold found;
        for (index_t i = offsets[t]; i < offsets[t + 1]; ++i) found.add_product(a[i], b[i]);
        out[t] = found.total();
        if (rest) rest[t] = found.rest();
    }
}

void exact_columns(const double *terms, index_t n_terms, const double *a, const double *b, index_t count,
                   index_t tasks, double *out, double *rest, double *sizes) {
    for (index_t t = 0; t < tasks; ++t) {
        Twofold found;
        double size = 0.0;
        for (index_t m = 0; m < n_terms; ++m) {
            found.add(terms[m * tasks + t], 0.0);
            size += std::fabs(terms[m * tasks + t]);
        }
        for (index_t k = 0; k < count; ++k) {
            found.add_product(a[k * tasks + t], b[k * tasks + t]);
            size += std::fabs(a[k * tasks + t] * b[k * tasks + t]);
        }
        out[t] = found.total();
        rest[t] = found.rest();
        sizes[t] = size;
    }
}

void stored_values(const StoredValues &is) {
    const index_t tasks = is.tasks, width = is.n_nuisance * tasks;
    index_t first = 0;
    for (index_t v = 0; v < is.n_values; ++v) {
        const index_t last = first + is.counts[v];
        double *left = is.left + v * width;
        for (index_t t = 0; t < tasks; ++t) {
            const index_t m = is.matrices == 1 ? 0 : t, at = v * tasks + t;
            const double *sizes = is.sizes + m * is.features, *shifts = is.shifts + m * is.features;
            double reach = 0.0;
            for (index_t k = first; k < last; ++k) reach += sizes[is.places[k]] * std::fabs(is.rows[k * tasks + t]);
            is.reach[at] = reach;
            for (index_t z = 0; z < is.n_nuisance; ++z) {
                const double *coefficients = is.coefficients + (m * is.n_nuisance + z) * is.features;
                double sum = 0.0;
                for (index_t k = first; k < last; ++k) sum += coefficients[is.places[k]] * is.rows[k * tasks + t];
                left[z * tasks + t] = is.fit[t * is.n_nuisance + z] - sum;
            }
            Twofold found;
            double total = 0.0;
            const auto add = [&](double a, double b) {
                found.add_product(a, b);
                total += std::fabs(a * b);
            };
            if (is.intercept) {
                add(left[t], 1.0);
                add(is.label_shifts[t], 1.0);
                for (index_t z = 1; z < is.n_nuisance; ++z) add(is.nuisance_shifts[z * tasks + t], -left[z * tasks + t]);
                for (index_t k = first; k < last; ++k) add(shifts[is.places[k]], -is.raw[k * tasks + t]);
            }
            is.exact[at] = found.total();
            is.rest[at] = found.rest();
            is.total[at] = total;
        }
        first = last;
    }
}

void stored_rows(const Stored &is) {
    const index_t tasks = is.tasks, first = is.intercept ? 1 : 0;
    for (index_t t = 0; t < tasks; ++t) {
        for (index_t b = 0; b < is.n_basis; ++b) {
            double sum = 0.0;
            for (index_t k = 0; k < is.count; ++k)
                sum += is.loadings[(b * is.count + k) * tasks + t] * is.rows[k * tasks + t];
            is.pulled[b * tasks + t] = sum;
        }
        for (index_t z = 0; z < is.n_nuisance; ++z) {
            double sum = 0.0;
            for (index_t b = 0; b < is.n_basis; ++b)
                sum += is.from_basis[(t * is.n_nuisance + z) * is.n_basis + b] * is.pulled[b * tasks + t];
            is.left[z * tasks + t] = is.nuisance[z * tasks + t] - sum;
        }
        double reach = 0.0, spread = 0.0;
        Twofold found;
        const auto add = [&](double a, double b) {
            found.add_product(a, b);
            spread += std::fabs(a * b);
        };
        if (is.intercept) {
            add(is.left[t], 1.0);
            add(is.label_shift[t], 1.0);
        }
        for (index_t k = 0; k < is.count; ++k) {
            const index_t at = k * tasks + t;
            reach += is.sizes[at] * std::fabs(is.rows[at]);
            if (is.intercept) add(is.shifts[at], -is.raw[at]);
        }
        for (index_t z = first; is.intercept && z < is.n_nuisance; ++z)
            add(is.nuisance_shifts[z * tasks + t], -is.left[z * tasks + t]);
        is.constant[t] = found.total();
        is.rest[t] = found.rest();
        is.spread[t] = spread;
        is.reach[t] = reach;
    }
}

void measure_against(const double *z, index_t count, const double *r, const index_t *offsets, index_t tasks,
                     const double *inverse, const double *slack, double *products, double *norms) {
    const index_t samples = offsets[tasks];
    for (index_t t = 0; t < tasks; ++t) {
        double squares = 0.0;
#pragma omp simd reduction(+ : squares)
        for (index_t i = offsets[t]; i < offsets[t + 1]; ++i) squares += r[i] * r[i];
        norms[t] = std::sqrt(squares);
    }
    for (index_t k = 0; k < count; ++k) {
        double *own = products + k * tasks;
        exact_products(z + k * samples, r, offsets, tasks, own, nullptr);
        for (index_t t = 0; t < tasks; ++t)
            own[t] = std::fabs(own[t]) * inverse[k * tasks + t] + slack[k * tasks + t] * norms[t];
    }
}

}  // namespace tasksieve
