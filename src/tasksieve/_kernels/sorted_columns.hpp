// Columns of a table as they lie in memory, each in a type of its own, to rows of doubles sorted by task.
#pragma once
#include "common.hpp"

namespace tasksieve {

// One column: where its numbers are, and of what type.
struct StoredColumn {
    enum class Type { f64, f32, i8, i16, i32, i64, u8, u16, u32, u64 };
    const void *data;
    Type type;
};

// out[j, i] = columns[j][order[i]] - shifts[t, j], for the rows i of task t between two offsets; without an order rows
// come as they are, without shifts nothing is subtracted. out: count x rows.
void sorted_columns(const StoredColumn *columns, index_t count, const index_t *order, index_t rows,
                    const index_t *offsets, index_t tasks, const double *shifts, int threads, double *out);

}  // namespace tasksieve
