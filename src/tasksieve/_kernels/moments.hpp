// Sums over rows beside Gram matrices, and what is made of them before and after a path: for small problems, where a
// call from Python costs more than the arithmetic.
#pragma once
#include "common.hpp"

namespace tasksieve {

// Products of columns x (rows x features, column-major) with labels and with nuisance columns, cut at the offsets; with
// one matrix the offsets cut nothing. What is here already is added to.
struct ProductSums {
    const double *x, *y;  // y: rows x columns, column-major: of all tasks for one matrix, else one column
    const double *z;      // n_nuisance x rows
    const index_t *offsets;
    index_t rows, features, columns, n_nuisance, matrices;
    double *cross;      // tasks x features, X'y
    double *labels;     // tasks, y'y
    double *beside;     // matrices x n_nuisance x features, Z'X
    double *nuisance;   // matrices x n_nuisance x n_nuisance, Z'Z
    double *explained;  // tasks x n_nuisance, Z'y
};
void add_products(const ProductSums &is, int threads);

// Lengths of columns, labels and nuisance columns from their squares, and, where there is one nuisance column, the
// moments of what it does not explain, in place; coefficients are (Z'Z)^-1 Z'X and fit is (Z'Z)^-1 Z'y, 0 where Z is.
struct Elimination {
    index_t matrices, tasks, features, n_nuisance;
    double *gram, *cross, *labels;
    const double *beside, *nuisance, *explained;
    double *coefficients, *fit;
    double *sizes, *label_sizes, *nuisance_sizes;
};
// Whether all lengths but zeros lie between 1/limit and limit.
bool take_out_constant(const Elimination &is, double limit, int threads);

// What the objective gains, and at most gains, where numbers of values are stored: from `facts` of `stored_values`, for
// at most one nuisance column. `sums` is the relative error of a moment.
struct StoringLoss {
    index_t n_values, tasks, n_nuisance;
    bool intercept;
    const index_t *counts;
    const double *facts;                  // 4 x n_values x tasks
    const double *label_sizes, *totals;   // tasks
    double sums;
    double *added, *lost;                 // n_values
};
void storing_loss(const StoringLoss &is);

}  // namespace tasksieve
