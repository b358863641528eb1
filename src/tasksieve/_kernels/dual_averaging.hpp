// Regularised dual averaging for several tasks (Yang, Lyu & King 2010, Algorithm 1), one row at a time.
#pragma once

#include "cells.hpp"
#include "compressed.hpp"
#include "sparse_rows.hpp"

namespace tasksieve {

enum class OnlinePenalty { l21 = 0, l11 = 1, l1_l21 = 2 };
enum class MissingRule { per_task = 0, importance = 1, rounds = 2 };
enum class OnlineLoss { squared = 0, logistic = 1, hinge = 2 };

struct OnlineSettings {
    OnlinePenalty penalty = OnlinePenalty::l21;
    MissingRule rule = MissingRule::per_task;
    OnlineLoss loss = OnlineLoss::squared;
    double alpha = 1.0, gamma = 1.0, ridge = 0.0, enhanced = 0.0;
    bool intercept = true, average = false;
    bool automatic = false;  // gamma is that of `AutoGamma`
};

// gamma = "auto": L/2 m^2 with L the largest curvature of the loss and m the mean size of the rows so far, as if there had
// been some rows of zeros before them; u^2 for the intercepts, whose feature is 1. A row's size is its norm times u_i =
// (t s_i / t_q)^(1/4): the fewer of all rows are of its task, the larger are its steps. u is the mean of the u_i. Neither
// ever falls. A row counts at most a few times the mean before it; rows without features count for the intercepts only.
struct AutoGamma {
    struct Mean {
        double sum = 0.0, rows = 0.0;

        void add(double value);
    };
    Mean size, crowd;
    double used = 0.0, next = 0.0;                // in the step at hand, and after the rows so far
    double offset_used = 0.0, offset_next = 0.0;

    void add(double norm, double crowding, double curvature);
    void step() {
        used = next;
        offset_used = offset_next;
    }
    void start(double gamma);  // go on from a fixed one
};

// How well rows were predicted before they were learned, task by task.
struct Foresight {
    std::vector<double> weight, loss, hits;  // sums: of weights, of losses, of weights where the sign was right
    std::vector<double> mean, spread;        // of the targets: mean, and weighted sum of squares about it
    std::vector<double> curve;               // sums over all tasks after 1, 2, 4, ... rows: weight, loss; weight, ...

    void resize(index_t tasks);
    void add(index_t task, double row_weight, double y, double z, double row_loss, index_t rows);
};

// One row: values of some features, or (without index) of all of them, in order.
template <class I>
using OnlineRow = Entries<double, I>;

// All there is to know after any number of rows: sums of gradients, and how many rows they come from. The weights
// are a closed form of these, so that features which a row does not hold cost nothing, however long they rest.
class DualAveraging {
  public:
    OnlineSettings settings;
    index_t features = 0, tasks = 0, steps = 0, rows = 0;
    // Gradient sums: task after task (`width` apart), or feature after feature (`capacity` apart) where sparse rows need a
    // feature's sums of all tasks, or bring new features. What is in between is 0.
    bool task_major = true;
    index_t width = 0, capacity = 0;
    Cells sums, total;                        // total: sum of the iterates, if averages are kept
    Cells sizes;                              // squared row norms (see .cpp); valid if sizes_ready
    bool sizes_ready = false;
    Bounds bounds;  // of the squared row norms, from above (see .cpp), or infinite
    Cells l1;                                 // r_j
    double l1_default = 0.0;
    bool l1_uniform = true;                   // all r_j equal: one number to read instead of many
    std::vector<double> weight, inverse;      // rows (their weights) of each task, and 1 / that
    std::vector<double> offset_sums, offset_total;
    AutoGamma automatic;
    Foresight foresight;
    double largest = 0.0;  // |y| so far
    // The open round: rows whose gradients were taken at its start and are not yet in the sums.
    std::vector<index_t> round_task, round_start, round_index;
    std::vector<double> round_gradient, round_value;
    std::vector<std::uint8_t> in_round;

    void resize(index_t new_features, index_t new_tasks);
    void set_layout(bool wanted_task_major);
    // The layout that sparse rows of known features need.
    void arrange_for_sparse() {
        if (settings.penalty != OnlinePenalty::l11 && !norms_kept()) set_layout(false);
    }
    void flip(index_t task);
    void close_round();
    // As if the open round ended now.
    DualAveraging closed() const {
        DualAveraging copy = *this;
        copy.close_round();
        return copy;
    }
    // Whether a row of known features, whatever the others are, can be learned; `size`: the squared norm of all of it.
    template <class I>
    bool accepts(const OnlineRow<I> &known, double size, double y, index_t task, double row_weight);
    // Learns from one row; false where it cannot be (see `possible`), and nothing is changed then, but that an open round may
    // have ended.
    template <class I>
    bool learn(const OnlineRow<I> &row, double y, index_t task, double row_weight);
    // Learns from sparse rows, and returns how many: fewer than given if one cannot be learned. `row_weight` may be
    // nullptr; rows of weight 0 are left out.
    template <class I>
    index_t learn_rows(const Compressed<double, I> &rows, const double *y, const index_t *task, const double *row_weight);
    template <class I>
    double score(const OnlineRow<I> &row, index_t task);
    void weights(double *out) const;          // tasks x features
    void intercepts(double *out) const;
    bool global() const { return settings.rule != MissingRule::per_task; }
    // What was known of the row norms is no longer so.
    void forget_norms();
    // Entries between a task and the next while rows are dense: whole vectors of the processor, without a remainder.
    static index_t padded_width(index_t features) { return (features + 7) / 8 * 8; }

  private:
    static constexpr index_t kAhead = 2;      // rows between asking for a row's state and needing it
    SparseRow ready_[kAhead + 1], row_, round_row_, nothing_;
    RowState at_;
    std::vector<double> dense_row_, factors_;
    double threshold() const;
    double gamma() const { return settings.automatic ? (automatic.used > 0.0 ? automatic.used : 1.0) : settings.gamma; }
    AutoGamma after(double size, index_t task, double row_weight) const;
    double step_size() const;
    double reach(index_t task, double row_weight) const;
    bool possible(double z, double gradient, double size, double y, index_t task, double row_weight) const;
    double shortened(double gradient, double size, index_t task, double row_weight) const;
    void end_step();
    bool moving() const;
    bool norms_kept() const { return global() && settings.penalty == OnlinePenalty::l21; }
    bool bounded() const;
    double mean_factor(index_t task) const;
    double offset(index_t task, double mean, double eta) const;
    void refresh_sizes();
    const double *padded_row(const double *x);
    double score_dense(const double *x, index_t task);
    SparseState sparse_state(index_t task);
    template <class I>
    void read_row(const OnlineRow<I> &row, index_t task, SparseRow &out) const;
    bool learn(const double *x, const SparseRow &row, double y, index_t task, double row_weight,
               const SparseRow &next);
    double score_sparse(const SparseRow &row, index_t task, const SparseRow &next);
    void add_dense(const double *x, double gradient, index_t task, double old_inverse, double new_inverse);
    void add_iterate();
    void add_sparse(const SparseRow &row, double gradient, index_t task, double new_mean, const SparseRow &next);
};

}  // namespace tasksieve
