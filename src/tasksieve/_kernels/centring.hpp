// Columns freed of their offsets, and sums whose rounding does not grow with the number of rows.
#pragma once
#include "common.hpp"

namespace tasksieve {

// out[:, k] = (I - B B') (w o (x_k - shift)) task by task; B: n_basis flat vectors, orthonormal within each task. The
// shift is the mean with weights w^2, drawn into the range of the rows that have weight: so every difference has a
// relative error of one rounding, and a constant column becomes exactly zero. Without `shifted` it is 0.
// squares, shifts: count x tasks; loadings (n_basis x count x tasks) are B' (w o (x_k - shift)).
// With `shared` the one matrix is unrolled over the tasks.
void centre(const double *x, index_t rows, const index_t *offsets, index_t tasks, bool shared, index_t count,
            const double *w, const double *basis, index_t n_basis, bool shifted, int threads, double *out,
            double *squares, double *shifts, double *loadings);

// out[t] + rest[t] = sum_i a_i b_i over the rows of task t, as if summed in twice the precision (Ogita, Rump and Oishi
// 2005); rest may be null.
void exact_products(const double *a, const double *b, const index_t *offsets, index_t tasks, double *out,
                    double *rest);

// out[t] + rest[t] = sum_m terms[m, t] + sum_k a[k, t] b[k, t] in the same way, and the sums of the sizes of all these.
void exact_columns(const double *terms, index_t n_terms, const double *a, const double *b, index_t count,
                   index_t tasks, double *out, double *rest, double *sizes);

// What is stored for rows of W (count x tasks; `raw`: in the units of the data), and what is known of it.
struct Stored {
    const double *rows, *raw;
    index_t count, tasks;
    const double *shifts, *sizes;                           // count x tasks, of the rows' columns
    const double *loadings;                                 // n_basis x count x tasks, the same on the nuisance basis
    index_t n_basis;
    const double *from_basis;                               // tasks x n_nuisance x n_basis
    const double *nuisance, *nuisance_shifts;               // n_nuisance x tasks
    index_t n_nuisance;
    bool intercept;                                         // the first nuisance column is the constant
    const double *label_shift;                              // tasks
    double *pulled, *left;                                  // n_basis x tasks, n_nuisance x tasks
    double *constant, *rest, *spread, *reach;               // tasks
};

// pulled = sum_k loadings_k rows_k; left = nuisance - from_basis pulled; reach = sum_k sizes_k |rows_k|; and, with an
// intercept, constant + rest = left_0 + label_shift - sum_k shifts_k raw_k - sum_z nuisance_shifts_z left_z in twice the
// precision, `spread` being the sum of the sizes of these terms.
void stored_rows(const Stored &is);

// The same for many values at once, whose rows come one value after the other, from nuisance coefficients of columns.
struct StoredValues {
    index_t n_values, tasks, matrices, features, n_nuisance;
    const index_t *counts, *places;            // rows of each value, and their features
    const double *rows, *raw;                  // rows x tasks
    const double *sizes, *shifts;              // matrices x features
    const double *coefficients;                // matrices x n_nuisance x features
    const double *fit;                         // tasks x n_nuisance
    const double *nuisance_shifts;             // n_nuisance x tasks
    const double *label_shifts;                // tasks
    bool intercept;                            // the first nuisance column is the constant
    double *left;                              // n_values x n_nuisance x tasks
    double *exact, *rest, *total, *reach;      // n_values x tasks
};

// left = fit - sum_k coefficients_k rows_k; reach = sum_k sizes_k |rows_k|; exact + rest, in twice the precision, and
// total as `constant`, `rest` and `spread` of `stored_rows`.
void stored_values(const StoredValues &is);

// products[k, t] = |<z_k, r>| inverse[k, t] + slack[k, t] ||r|| over the rows of task t, the inner product in twice the
// precision, and the norms of r.
void measure_against(const double *z, index_t count, const double *r, const index_t *offsets, index_t tasks,
                     const double *inverse, const double *slack, double *products, double *norms);

}  // namespace tasksieve
