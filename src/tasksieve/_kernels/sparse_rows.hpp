// Sparse rows of a stream: the state of a few of the many features, read, used and written back.
//
// What a row costs is finding its entries in memory. So each pass over a row also asks for entries of a row to come
// (`next`), a few at a time: memory and arithmetic then work side by side. A row is read once, into vectors, and written
// once; no feature may therefore come twice in it.
#pragma once

#include "cells.hpp"
#include "common.hpp"

namespace tasksieve {

// One row, in whole blocks of 8: past `count`, its first feature again, with value 0.
struct SparseRow {
    std::vector<double> value;
    std::vector<index_t> feature, cell;  // cell: where the feature's sum for the row's task is
    index_t count = 0, blocks = 0;

    // Features that come more than once are added up.
    template <class I>
    void read(const double *values, const I *indices, index_t entries, index_t room, index_t task);
};

// What was read of the state for the row at hand.
struct RowState {
    std::vector<double> entry, norm;  // S_jq of each feature; ||S_j||^2, or a bound of ||V_j||^2
    std::vector<double> size, inner;  // ||V_j||^2 where the bound leaves it open; k r_j
    std::vector<index_t> kept;        // features left open
    std::vector<float> bound;         // the bounds after the step

    void reserve(index_t places);
};

// The rest of the state, as these functions need it.
struct SparseState {
    double *sums;
    index_t room;           // entries between a feature and the next
    double *sizes;          // ||S_j||^2
    float *bounds;          // of ||V_j||^2
    const double *inverse;  // what the sums of each task are multiplied by
    const double *l1;       // r_j; nullptr: 0
    bool l1_uniform;
    index_t task;
};

using Bounds = std::vector<float, PagedAllocator<float>>;

// x . W_q up to a factor: each reads the row's state and asks for what `next` needs.
double dot_softened(const SparseRow &row, const SparseState &state, RowState &at, double k, double mean,
                    const SparseRow &next);
double dot_normed(const SparseRow &row, const SparseState &state, RowState &at, double k, const SparseRow &next);
// `bounded`: whether the norms that are computed bound later ones.
double dot_bounded(const SparseRow &row, const SparseState &state, RowState &at, double k, bool bounded,
                   const SparseRow &next);

// Reads the state of a row that is not scored.
void read_state(const SparseRow &row, const SparseState &state, bool normed, RowState &at);

// S_jq += g x_j, from the state that was read; with ||S_j||^2, or with the bounds of ||V_j||^2 (mean: what S_jq will be
// multiplied by after this step).
void add_plain(const SparseRow &row, const SparseState &state, RowState &at, double g);
void add_normed(const SparseRow &row, const SparseState &state, RowState &at, double g, const SparseRow &next);
void add_bounded(const SparseRow &row, const SparseState &state, RowState &at, double g, double mean, double k,
                 const SparseRow &next);

}  // namespace tasksieve
