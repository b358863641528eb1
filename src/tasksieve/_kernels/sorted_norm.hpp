// The sorted (Group OWL) norm: prox and polar by sorting and pooling, and the solvers whose inner loop it is.
#pragma once
#include "compressed.hpp"

namespace tasksieve {

// sum_k weights_k ||W||_[k], rows of W sorted by norm. Buffers are kept between calls: none allocates once it has
// seen its size, and the order of the last call is where sorting starts.
class SortedNorm {
  public:
    // out = argmin_V 1/2 ||V - rows||^2 + step sum_k weights_k ||V||_[k] (+ V >= 0); row-major, may be in place.
    void prox(const double *rows, index_t count, index_t tasks, const double *weights, double step, bool positive,
              double *out);
    // The smallest v with rows/v in the dual ball: max_k cumsum(sorted norms)_k / cumsum(weights)_k.
    double polar(const double *rows, index_t count, index_t tasks, const double *weights, bool positive);
    // The norm itself.
    double value(const double *rows, index_t count, index_t tasks, const double *weights);

  private:
    struct Entry {
        double norm;
        index_t row;
    };
    struct Block {
        double sum;
        index_t first, size;
    };
    void norms(const double *rows, index_t count, index_t tasks, bool positive);
    void sort(std::vector<Entry> &entries);

    std::vector<double> norm_;
    std::vector<Entry> order_, polar_order_, value_order_;
    std::vector<Block> blocks_;
};

// Least squares with a sorted norm on packed columns, by accelerated proximal gradient.
struct SortedProblem {
    const double *x = nullptr;  // contiguous working columns, column-major
    index_t rows = 0, count = 0, tasks = 1;
    const index_t *offsets = nullptr;
    bool shared = false;  // every task uses all rows of x
    const double *target = nullptr;  // flat
    const double *gram = nullptr;        // count x count (one matrix for all tasks, or a single task), or null
    const double *y_products = nullptr;  // count x tasks, X' target
    double y_squared = 0.0;
    const double *weights = nullptr;
    bool positive = false;
    int threads = 1;
};

struct SortedReport {
    index_t iterations = 0;
    double gap = 0.0, curvature = 0.0;
};

class SortedFista {
  public:
    // w: start and result; dual_w: the rows whose residual is the best dual point seen.
    SortedReport solve(const SortedProblem &problem, double *w, double *dual_w, double tol, index_t max_iter,
                       index_t check_every, double curvature);

  private:
    double correlate(const SortedProblem &problem, const double *w, double *products, double *image);
    SortedNorm norm_;
    std::vector<double> previous_, following_, point_, products_, previous_products_, following_products_,
        point_products_, image_, previous_image_, following_image_, residual_;
    std::vector<index_t> support_;
    std::vector<double> support_rows_;
};

// One epoch of prox-SVRG (Bao et al. 2025, Algorithm 2, with the correction scaled by n / batch).
struct RowMatrix {
    const double *dense = nullptr;  // rows x count, row-major; null: sparse
    Compressed<double, std::int32_t, std::int64_t> sparse;
    const double *centre = nullptr;  // count: subtracted from every (sparse) row; null: none
    index_t rows = 0, count = 0;
};

struct StochasticProblem {
    RowMatrix x;
    index_t tasks = 1;
    const index_t *task_of = nullptr;  // rows belong to one task each; null: all rows to all tasks
    bool multinomial = false;
    const double *root = nullptr;    // square roots of the row weights, already in a dense x; null: 1
    const double *weights = nullptr;
    bool positive = false;
    bool intercept = false;  // multinomial: a free constant per class
};

class SortedSvrg {
  public:
    // w, b: start and result (b: tasks, multinomial with intercept). reference_z: predictions x.w (without b) at the
    // start; gradient: of the whole loss there; batches: steps x size row numbers.
    void epoch(const StochasticProblem &problem, double *w, double *b, const double *reference_z,
               const double *gradient, const double *reference_b, const double *b_gradient, const index_t *batches,
               index_t steps, index_t size, double step);

  private:
    SortedNorm norm_;
    std::vector<double> point_, change_, z_, old_, direction_, centre_z_, total_, b_change_;
};

}  // namespace tasksieve
