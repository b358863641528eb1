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
    // Learns from one row; false where its gradient is not finite (nothing is changed then).
    template <class I>
    bool learn(const OnlineRow<I> &row, double y, index_t task, double row_weight);
    // Learns from sparse rows, and returns how many: fewer than given if a gradient was not finite. `row_weight` may be
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
    double step_size() const;
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
