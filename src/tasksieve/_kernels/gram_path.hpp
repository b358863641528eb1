// A whole path on sufficient statistics: G_t = X_t'X_t and c_t = X_t'y_t, for the squared loss.
#pragma once
#include <cstdlib>
#include <memory>

#include "active_set.hpp"
#include "common.hpp"

namespace tasksieve {

// A Gram matrix lies in memory as blocks of rows, each block as panels of columns, so that many rows are read in one
// stream; what is beyond the last feature is zero.
constexpr index_t panel_rows = 64, panel_columns = 8;

inline index_t panels_of(index_t features) { return (features + panel_columns - 1) / panel_columns; }
inline index_t panel_cells(index_t features) {
    return (features + panel_rows - 1) / panel_rows * panels_of(features) * panel_rows * panel_columns;
}
inline index_t panel_at(index_t features, index_t row, index_t column) {
    const index_t panel = row / panel_rows * panels_of(features) + column / panel_columns;
    return (panel * panel_rows + row % panel_rows) * panel_columns + column % panel_columns;
}

// 1/2 sum_t (y_t'y_t - 2 c_t'w_t + w_t'G_t w_t) + lam sum_j (group_j ||W_j||_2 + l1_j ||W_j||_1) + ridge/2 ||W||^2.
// Nothing here is copied: the arrays must outlive the path.
struct GramProblem {
    const double *gram = nullptr;  // matrices x panel_cells(features)
    index_t matrices = 1;          // one for all tasks, or one a task
    index_t features = 0, tasks = 0;
    const double *cross = nullptr;        // tasks x features
    const double *labels = nullptr;       // tasks, y_t'y_t
    const double *sizes = nullptr;        // matrices x features, norms of the columns as they were summed
    const double *label_sizes = nullptr;  // tasks, the same of the labels
    const double *group = nullptr, *l1 = nullptr;
    bool positive = false;
    double rounding = 0.0;     // |error of G_jk| <= rounding sizes_j sizes_k, and so for c and y'y
    double gauge_error = 0.0;  // relative, of a computed gauge
    index_t room = 0;          // features in play at most
    double rows = 0.0;         // of a matrix, where Newton's method would take over once it is less work; 0: never
    int threads = 1;
};

enum class GramStop : int {
    done = 0,
    paused = 1,    // enough work for one call
    crowded = 2,   // more features in play than there is room for, or than Newton's method would mind
    rounding = 3,  // what rounding may have done to the statistics is not small beside the goal
    spent = 4,     // as many epochs as are allowed: the last value is finished as far as it got
};

struct GramValue {
    double objective = 0.0;  // in exact arithmetic with the best intercepts it would differ by at most `objective_error`
    double objective_error = 0.0;
    double gap = 0.0;  // bound of the duality gap, all rounding included
    double seconds = 0.0;
    index_t epochs = 0;
    index_t rejected = 0;  // rows that the start of the value proves to be zero
    index_t first = 0, count = 0;  // its rows among those of all values
};

// The state that is carried from one strength to the next.
class GramPath {
  public:
    explicit GramPath(const GramProblem &problem);

    // Strengths one after the other, until all are solved or something else stops it. A value that was not finished is
    // not among the values. `budget` counts multiplications. Not for several threads at once.
    GramStop advance(const double *lams, const double *ridges, const double *goals, index_t count, index_t max_epochs,
                     double budget);

    std::vector<GramValue> values;   // of the last call
    std::vector<index_t> features;   // of all its values, in rising order within each
    std::vector<double> rows;        // coefficients, tasks by tasks

  private:
    // What a sweep works on: the features in play, in the order of their arrival.
    struct Play;
    friend struct Play;

    void all_in_play();
    void take_apart();
    void extrapolate(double lam);
    double objective(double lam, double ridge, const double *w, const double *h) const;
    void measure(double lam, double ridge, const double *w, const double *h, double loose);
    void join(double threshold);
    void fresh(const double *w, double *h);
    bool solve_entries(double lam, double ridge, double goal, index_t max_epochs, GramValue &value);
    double certify(double lam, double ridge, const double *w, const double *h, GramValue &value, double loose);
    void drop_rounding();
    index_t rejected(double lam, double ridge, double gap) const;
    GramStop solve(double lam, double ridge, double goal, index_t max_epochs, Play &play, GramValue &value);
    void follow(std::vector<index_t> &live, const std::vector<double> &delta, double *h);
    bool outdone(double work) const;
    const double *block_in_play(index_t t, index_t block) const;
    double in_play(index_t m, index_t k, index_t l) const;

    GramProblem p_;
    std::vector<index_t> active_;         // features in play
    std::vector<index_t> place_;          // where a feature is in play, or -1
    std::vector<double> w_, w_before_;    // by place, then tasks
    std::vector<double> h_, h_before_;    // tasks x features (padded): X'residual at these rows
    std::vector<double> start_w_, start_h_, gauges_, kappa_, reach_;
    struct Free {
        void operator()(double *memory) const { std::free(memory); }
    };
    std::unique_ptr<double[], Free> packed_;  // Gram matrices of the features in play, with room for all of them
    index_t stride_ = 0, padded_ = 0;  // room for features in play; the length of a row of h
    bool entries_ = false;  // entries of a row are zero one by one
    double lam_ = 0.0, lam_before_ = 0.0, scale_ = 1.0, lost_ = 0.0, work_ = 0.0;
    std::vector<ActiveSet> sets_;  // of each task, where coefficients are penalised one by one
    int costly_ = 0;  // values in a row that were more work than by Newton's method
    int slow_ = 0;    // values in a row that took many epochs
};

// gram (matrices x panel_cells(features)) += X_t'X_t of column-major X (rows x features) cut at the offsets; with one
// matrix the offsets cut nothing.
void add_grams(const double *x, index_t rows, const index_t *offsets, index_t matrices, index_t features, int threads,
               double *gram);

// gram_m -= first_m' second_m of factors (matrices x count x features).
void subtract_outer(const double *first, const double *second, index_t matrices, index_t count, index_t features,
                    int threads, double *gram);

}  // namespace tasksieve
