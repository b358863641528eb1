#include "sparse_rows.hpp"

#include <numeric>

#include "shrinkage.hpp"

namespace tasksieve {

namespace {

constexpr index_t kBlock = 8;

// A bound that is larger by more than all rounding, that to single precision too.
TASKSIEVE_INLINE double enlarged(double norm) { return norm * (1.0 + 5e-7) + 1e-37; }

template <class I>
TASKSIEVE_INLINE bool widen(const double *values, const I *indices, index_t entries, index_t room, index_t task,
                            double *value, index_t *feature, index_t *cell) {
    for (index_t i = 0; i < entries; ++i) {
        value[i] = values[i];
        feature[i] = indices[i];
        cell[i] = index_t(indices[i]) * room + task;
    }
    I wrong = 0;
    for (index_t i = 1; i < entries; ++i) wrong |= indices[i - 1] >= indices[i] ? I(1) : I(0);
    return wrong == 0;
}

TASKSIEVE_MULTIVERSION
bool widen_row(const double *values, const std::int32_t *indices, index_t entries, index_t room, index_t task,
               double *value, index_t *feature, index_t *cell) {
    return widen(values, indices, entries, room, task, value, feature, cell);
}

TASKSIEVE_MULTIVERSION
bool widen_row(const double *values, const std::int64_t *indices, index_t entries, index_t room, index_t task,
               double *value, index_t *feature, index_t *cell) {
    return widen(values, indices, entries, room, task, value, feature, cell);
}

// Asks for eight entries.
template <class Cell>
TASKSIEVE_INLINE void ask(const Cell *cells, const index_t *place) {
    for (index_t l = 0; l < kBlock; ++l) fetch_ahead_to_write(cells + place[l]);
}

// ||soft(U_j, threshold)||^2. Four sums side by side fill a vector; the room for a feature's tasks is a multiple of four,
// and 0 where there is none.
TASKSIEVE_INLINE double soft_square_sum(const double *s, const double *mean, double threshold, index_t room) {
    double sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
    for (index_t q = 0; q < room; q += 4) {
        const double u0 = soft(s[q] * mean[q], threshold), u1 = soft(s[q + 1] * mean[q + 1], threshold);
        const double u2 = soft(s[q + 2] * mean[q + 2], threshold), u3 = soft(s[q + 3] * mean[q + 3], threshold);
        sum0 += u0 * u0;
        sum1 += u1 * u1;
        sum2 += u2 * u2;
        sum3 += u3 * u3;
    }
    return (sum0 + sum1) + (sum2 + sum3);
}

}  // namespace

// --- reading rows ----------------------------------------------------------------------------------------------

template <class I>
void SparseRow::read(const double *values, const I *indices, index_t entries, index_t room, index_t task) {
    count = entries;
    blocks = (entries + kBlock - 1) / kBlock;
    if (index_t(value.size()) < blocks * kBlock) {
        value.resize(blocks * kBlock);
        feature.resize(blocks * kBlock);
        cell.resize(blocks * kBlock);
    }
    if (!widen_row(values, indices, entries, room, task, value.data(), feature.data(), cell.data())) {
        std::vector<index_t> order(entries);
        std::iota(order.begin(), order.end(), index_t(0));
        std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) { return indices[a] < indices[b]; });
        count = 0;
        for (index_t place : order) {
            const index_t j = indices[place];
            if (count > 0 && feature[count - 1] == j) {
                value[count - 1] += values[place];
                continue;
            }
            value[count] = values[place];
            feature[count] = j;
            cell[count] = j * room + task;
            ++count;
        }
        blocks = (count + kBlock - 1) / kBlock;
    }
    for (index_t i = count; i < blocks * kBlock; ++i) {
        value[i] = 0.0;
        feature[i] = feature[0];
        cell[i] = cell[0];
    }
}

template void SparseRow::read(const double *, const std::int32_t *, index_t, index_t, index_t);
template void SparseRow::read(const double *, const std::int64_t *, index_t, index_t, index_t);

void RowState::reserve(index_t places) {
    if (index_t(entry.size()) >= places) return;
    for (auto *buffer : {&entry, &norm, &size, &inner}) buffer->resize(places);
    kept.resize(places);
    bound.resize(places);
}

TASKSIEVE_MULTIVERSION
void read_state(const SparseRow &row, const SparseState &state, bool normed, RowState &at) {
    for (index_t i = 0; i < row.blocks * kBlock; ++i) {
        at.entry[i] = state.sums[row.cell[i]];
        at.norm[i] = normed ? state.sizes[row.feature[i]] : double(state.bounds[row.feature[i]]);
    }
}

// k r_j of each feature
TASKSIEVE_INLINE void read_thresholds(const SparseRow &row, const SparseState &state, double k, double *inner) {
    if (state.l1 && !state.l1_uniform)
        for (index_t i = 0; i < row.blocks * kBlock; ++i) inner[i] = k * state.l1[row.feature[i]];
    else
        std::fill_n(inner, row.blocks * kBlock, state.l1 ? k * state.l1[0] : 0.0);
}

// --- scoring ---------------------------------------------------------------------------------------------------

// Loops that find entries in memory and loops that compute are apart: the second kind fills vectors.

TASKSIEVE_MULTIVERSION
double dot_softened(const SparseRow &row, const SparseState &state, RowState &at, double k, double mean,
                    const SparseRow &next) {
    const double *value = row.value.data(), *sums = state.sums;
    const index_t *cell = row.cell.data(), *next_cell = next.cell.data(), places = row.blocks * kBlock;
    double *entry = at.entry.data();
    for (index_t i = 0; i < std::max(places, next.blocks * kBlock); i += kBlock) {
        if (i < next.blocks * kBlock) ask(sums, next_cell + i);
        if (i < places)
            for (index_t l = i; l < i + kBlock; ++l) entry[l] = sums[cell[l]];
    }
    double sum = 0.0;
    for (index_t i = 0; i < row.blocks * kBlock; ++i) sum += value[i] * soft(entry[i] * mean, k);
    return sum;
}

TASKSIEVE_MULTIVERSION
double dot_normed(const SparseRow &row, const SparseState &state, RowState &at, double k, const SparseRow &next) {
    const double *value = row.value.data(), *sums = state.sums, *sizes = state.sizes;
    const index_t *cell = row.cell.data(), *feature = row.feature.data(), *next_cell = next.cell.data();
    const index_t places = row.blocks * kBlock;
    double *entry = at.entry.data(), *norm = at.norm.data();
    for (index_t i = 0; i < std::max(places, next.blocks * kBlock); i += kBlock) {
        if (i < next.blocks * kBlock) ask(sums, next_cell + i);
        if (i < places)
            for (index_t l = i; l < i + kBlock; ++l) {
                entry[l] = sums[cell[l]];
                norm[l] = sizes[feature[l]];
            }
    }
    double sum = 0.0;
    for (index_t i = 0; i < row.blocks * kBlock; ++i) sum += value[i] * entry[i] * shrink(norm[i], k);
    return sum;
}

TASKSIEVE_MULTIVERSION
double dot_bounded(const SparseRow &row, const SparseState &state, RowState &at, double k, bool bounded,
                   const SparseRow &next) {
    const double *sums = state.sums, *inverse = state.inverse, limit = k * k, mean = inverse[state.task];
    const index_t *cell = row.cell.data(), *feature = row.feature.data(), places = row.blocks * kBlock;
    double *entry = at.entry.data(), *norm = at.norm.data();
    index_t *kept = at.kept.data(), count = 0;
    for (index_t i = 0; i < std::max(places, next.blocks * kBlock); i += kBlock) {
        if (i < next.blocks * kBlock) ask(state.bounds, next.feature.data() + i);
        if (i < places)
            for (index_t l = i; l < i + kBlock; ++l) {
                entry[l] = sums[cell[l]];
                norm[l] = double(state.bounds[feature[l]]);
                kept[count] = l;
                count += norm[l] > limit;
            }
    }
    while (count > 0 && kept[count - 1] >= row.count) --count;  // not of the row
    double *size = at.size.data(), *inner = at.inner.data();
    read_thresholds(row, state, k, inner);
    std::fill_n(size, places, 0.0);
    for (index_t c = 0; c < count; ++c) {
        const index_t i = kept[c];
        size[i] = soft_square_sum(sums + feature[i] * state.room, inverse, inner[i], state.room);
        if (bounded) norm[i] = size[i];
    }
    // Features that a bound ruled out add a zero, as those do that their norm rules out: bounds change no bit.
    const double *value = row.value.data();
    double sum = 0.0;
    for (index_t i = 0; i < row.blocks * kBlock; ++i)
        sum += value[i] * soft(entry[i] * mean, inner[i]) * shrink(size[i], k);
    return sum;
}

// --- learning --------------------------------------------------------------------------------------------------

TASKSIEVE_MULTIVERSION
void add_plain(const SparseRow &row, const SparseState &state, RowState &at, double g) {
    const double *value = row.value.data(), *entry = at.entry.data();
    const index_t *cell = row.cell.data();
    double *sums = state.sums;
    for (index_t i = 0; i < row.count; ++i) sums[cell[i]] = entry[i] + g * value[i];
}

TASKSIEVE_MULTIVERSION
void add_normed(const SparseRow &row, const SparseState &state, RowState &at, double g, const SparseRow &next) {
    const double *value = row.value.data();
    double *entry = at.entry.data(), *norm = at.norm.data(), *sums = state.sums, *sizes = state.sizes;
    const index_t *cell = row.cell.data(), *feature = row.feature.data(), *next_feature = next.feature.data();
#pragma omp simd
    for (index_t i = 0; i < row.blocks * kBlock; ++i) {
        const double d = g * value[i], s = entry[i];
        norm[i] += d * (2.0 * s + d);
        entry[i] = s + d;
    }
    for (index_t i = 0; i < next.blocks * kBlock; i += kBlock) ask(sizes, next_feature + i);
    for (index_t i = 0; i < row.count; ++i) {
        sums[cell[i]] = entry[i];
        sizes[feature[i]] = norm[i];
    }
}

TASKSIEVE_MULTIVERSION
void add_bounded(const SparseRow &row, const SparseState &state, RowState &at, double g, double mean, double k,
                 const SparseRow &next) {
    const double *value = row.value.data();
    double *entry = at.entry.data(), *norm = at.norm.data(), *inner = at.inner.data(), *sums = state.sums;
    float *bounds = state.bounds, *bound = at.bound.data();
    const index_t *cell = row.cell.data(), *feature = row.feature.data(), *next_feature = next.feature.data();
    const float limit = float(k * k);
    read_thresholds(row, state, k, inner);
#pragma omp simd
    for (index_t i = 0; i < row.blocks * kBlock; ++i) {
        const double s = entry[i], t = s + g * value[i];
        const double before = soft(s * mean, inner[i]), after = soft(t * mean, inner[i]);
        bound[i] = float(enlarged(enlarged(norm[i]) + (after * after - before * before)));
        entry[i] = t;
    }
    // a feature whose norm will be asked for needs the entries of all tasks: their first and last lines
    index_t *kept = at.kept.data(), count = 0;
    for (index_t i = 0; i < next.count; ++i) {
        fetch_ahead_to_write(sums + next.cell[i]);
        kept[count] = next_feature[i] * state.room;
        count += bounds[next_feature[i]] > limit;
    }
    for (index_t i = 0; i < count; ++i) {
        fetch_ahead_to_write(sums + kept[i]);
        fetch_ahead_to_write(sums + kept[i] + state.room - 1);
    }
    for (index_t i = 0; i < row.count; ++i) {
        sums[cell[i]] = entry[i];
        bounds[feature[i]] = bound[i];
    }
}

}  // namespace tasksieve
