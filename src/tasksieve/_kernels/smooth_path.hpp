// A whole path of a smooth loss that is a sum over rows, on packed columns: Newton's method with the penalty kept.
#pragma once
#include <memory>

#include "common.hpp"

namespace tasksieve {

enum class SmoothLoss : int { logistic = 0, poisson = 1 };

// min over W and b of sum_i s_i f(y_i, z_i) + lam sum_j (group_j ||W_j||_2 + l1_j ||W_j||_1), z = (X~ W)/root + b + offset.
// Nothing here is copied: the arrays must outlive the path.
struct SmoothProblem {
    const double *x = nullptr;  // rows x features, column-major: centred, times the roots of the weights
    index_t rows = 0, features = 0, tasks = 0;
    const index_t *offsets = nullptr;  // of the tasks in a flat vector
    bool shared = false;               // one matrix for all tasks
    const double *root = nullptr;      // flat, of the weights s
    const double *labels = nullptr;    // flat
    const double *offset = nullptr;    // flat, or none
    bool intercept = false;
    SmoothLoss loss = SmoothLoss::logistic;
    const double *group = nullptr, *l1 = nullptr;  // of each feature
    bool positive = false;
    index_t room = 0;  // features in play at most
};

enum class SmoothStop : int {
    done = 0,
    paused = 1,   // enough work for one call
    crowded = 2,  // more features in play than there is room for
    stuck = 3,    // too many iterations, or no step helps
};

struct SmoothValue {
    double gap = 0.0;  // as it was computed: rounding is not in it
    double seconds = 0.0;
    index_t epochs = 0;
    index_t count = 0;  // of its rows
};

// The state that is carried from one strength to the next.
class SmoothPath {
  public:
    explicit SmoothPath(const SmoothProblem &problem);

    // Strengths one after the other, until all are solved or something else stops it. A value that was not finished is
    // not among the values. `budget` counts multiplications. Not for several threads at once.
    SmoothStop advance(const double *lams, const double *goals, index_t count, index_t max_epochs, double budget);

    std::vector<SmoothValue> values;  // of the last call
    std::vector<index_t> features;    // of all its values, in rising order within each
    std::vector<double> rows;         // coefficients, tasks by tasks
    std::vector<double> levels;       // intercepts b, tasks by tasks

  private:
    SmoothStop solve(double lam, double goal, index_t max_epochs, SmoothValue &value);
    void extrapolate(double lam);
    void list_live();
    bool evaluate();
    template <class Row> bool evaluate_task(index_t t);
    template <class Row> double excess(double scale) const;
    void correlate(bool everything);
    double gap(double lam, bool everything, double goal) const;
    double norm(double lam) const;
    void refresh(double threshold);
    void join(const std::vector<index_t> &some);
    void promising(double threshold);
    bool crowded() const { return index_t(play_.size()) == room_ && room_ < p_.features; }

    double model_gap(double lam) const;
    index_t descend(double lam, double tol, index_t most);

    const double *column(index_t j, index_t t) const { return p_.x + j * p_.rows + (p_.shared ? 0 : p_.offsets[t]); }

    SmoothProblem p_;
    index_t samples_ = 0, room_ = 0, stride_ = 0;
    bool has_weights_ = false, has_second_ = false, known_ = false;
    std::vector<double> inverse_root_;
    // The point: rows of all features, intercepts, and what the loss is there.
    std::vector<double> w_, b_, z_, slope_, curvature_, power_, residual_;
    double loss_ = 0.0;
    std::vector<index_t> live_;
    std::vector<double> c_, gauges_;  // X'residual of features (by tasks), and their gauges at strength 1
    // The last two solutions, and where c_ was taken.
    std::vector<double> before_w_, before_b_, older_w_, older_b_;
    double lam_ = INFINITY, older_lam_ = INFINITY;
    // The model: second derivatives of a point, perhaps of one passed some time ago, for the features in play.
    std::vector<index_t> play_, place_;
    std::vector<double> second_, gram_, diagonal_, beside_, total_, weighted_;
    std::unique_ptr<double[]> packed_;  // columns in play, of one task after another
    std::vector<double> v_, g_;  // rows in play, and X'residual of the model
    double work_ = 0.0;
};

}  // namespace tasksieve
