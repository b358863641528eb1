// Nodewise Lassos: each column of a matrix on all others, many of them in lock-step.
#pragma once
#include "common.hpp"

namespace tasksieve {

// Column-major x (rows x features) whose columns have length 1, or are zero. For a target j
//
//     z = x_j - X g,   g minimises 1/2 ||x_j - X g||^2 + lam ||g||_1,   g_j = 0,
//
// at strengths lam that fall by `ratio` from a start, `values` of them at most. With the bias factor
// eta = max_k |x_k'z| / ||z|| (k not j) and the noise factor tau = ||z|| / x_j'z, the z with the smallest eta is kept
// until eta has reached `target`, and from there on while tau is at most `growth` times what it was there (Zhang and
// Zhang 2014) and each value makes eta smaller by at least a fiftieth. With one value that is the Lasso at the start.
struct NodewiseProblem {
    const double *x = nullptr;
    index_t rows = 0, features = 0;
    index_t values = 1;
    double ratio = 1.0, target = 0.0, growth = 1.0;
    double tolerance = 1e-9;  // by which |x_k'z| may exceed lam, relatively
    index_t rounds = 50;      // products with all columns, of one value, at most
    int threads = 1;
};

// z: count x rows; a target whose column is zero has zeros. strengths: those of the z.
void nodewise(const NodewiseProblem &problem, const index_t *targets, const double *start, index_t count, double *z,
              double *strengths);

}  // namespace tasksieve
