// Block coordinate descent on packed columns: one row of W at a time, each row solved exactly.
#pragma once
#include "common.hpp"
#include "row_update.hpp"

namespace tasksieve {

struct RowProblem {
    const double *x = nullptr;      // packed columns, column-major
    const float *narrow = nullptr;  // in place of x
    index_t rows = 0;
    const index_t *offsets = nullptr;
    index_t tasks = 0;
    bool shared = false;  // every task uses all rows of x
    const index_t *columns = nullptr;
    index_t count = 0;
    const double *h = nullptr;      // count x tasks, squared norms of the columns; 0: the coefficient stays 0
    int kind = ROW_SUM;             // what the strengths mean
    const double *group = nullptr;  // strengths of the rows, or of the blocks
    const double *l1 = nullptr;
    // Columns starts[k] to starts[k + 1] are one block of rows that are solved together, as if h were the whole of their
    // curvature (columns orthogonal within a task, or h a bound); null: each column by itself.
    const index_t *starts = nullptr;
    index_t n_blocks = 0;
    double ridge = 0.0;
    bool positive = false;
    // Inner products of the first `width` columns of x, per task (one for all tasks if shared), or null. It lies in a
    // larger matrix of `stride` columns, which grows while a path is solved.
    const double *gram = nullptr;
    index_t width = 0, stride = 0;
    const double *y_products = nullptr;  // tasks x width, <x_jt, y_t>; with gram
    double y_squared = 0.0;              // with gram
    // Weights A of a graph of tasks (tasks x tasks, a zero diagonal), or null: 1/2 sum_j sum_{s<t} A_st (w_js - w_jt)^2.
    const double *coupling = nullptr;
    // With it, where the group norm is all the penalty: eigenvalues (count x tasks) and eigenvectors (count x tasks x
    // tasks, one a column) of diag(h_j) + its Laplacian. Rows are then solved exactly, else by a few majorised steps.
    const double *curvatures = nullptr, *rotations = nullptr;
    // Or null. Tasks classes[g] to classes[g + 1] are the classes of one task, on the same rows, and the residual of a row
    // stays orthogonal to its `shares`, flat, of length 1 over the classes: that direction is free. So are multiples of
    // `levels` in each class, whose best ones an epoch ends with; `inverse` has, one matrix after another, the
    // (pseudo)inverses of their inner products. Rows of W are solved as if h were all of their curvature: it is not less.
    const index_t *classes = nullptr;
    index_t n_classified = 0;
    const double *shares = nullptr, *levels = nullptr, *inverse = nullptr;
};

struct RowReport {
    index_t epochs = 0;
    double gap = 0.0;
    double objective = 0.0;
};

// min_w sum_t (h_t/2 w_t^2 - c_t w_t) + the norm of the row's kind (+ w >= 0); c is overwritten.
void solve_row(double *c, const double *h, index_t tasks, double group, double l1, double ridge, bool positive,
               double *w, int kind = ROW_SUM);

// The row's dual gauge: the smallest v with m / v in the dual ball of the norm.
double row_gauge(const double *m, index_t tasks, double group, double l1, bool positive, int kind = ROW_SUM);

// Those of many rows, at most, where products are known up to `errors` (or null); 0 for rows that are not penalised.
void row_gauges(const double *m, const double *errors, index_t count, index_t tasks, const double *group,
                const double *l1, bool positive, double *out);

void row_norms(const double *rows, index_t count, index_t tasks, double *out);

// Rows of some features from those of known ones, 0 where a feature is not known; both lists ascend.
void pick_rows(const index_t *known, index_t n_known, const double *rows, const index_t *features, index_t count,
               index_t tasks, double *out);

// `state` is the residual (flat), which is updated with w; or, with a Gram matrix, filled with X'residual (tasks x width).
// Tasks are shared among threads where columns are long; results do not depend on it.
RowReport coordinate_descent(const RowProblem &problem, double *w, double *state, index_t max_epochs, double tol,
                             int threads = 1);

}  // namespace tasksieve
