// Descent, and a pass, over one kind of row: functions of their own for every kind, so that each is compiled for every
// processor. They are defined in a file for each type of stored numbers (descent_*.cpp), which compile side by side.
#pragma once
#include "dual_coordinate.hpp"

namespace tasksieve {

#define TASKSIEVE_DECLARE_ROWS(ROWS)                                                                                 \
    DescentReport run(const ROWS &rows, const GraphProblem &p, const Descent<TableOf<ROWS>> &descent);               \
    void pass(ROWS &rows, const GraphProblem &p, const TableOf<ROWS> *wt, const double *beta, index_t begin,         \
              index_t end, double *scores, double *vt);
#define TASKSIEVE_DECLARE_ROWS_OF(T) TASKSIEVE_ROW_KINDS(TASKSIEVE_DECLARE_ROWS, T)
TASKSIEVE_STORED_TYPES(TASKSIEVE_DECLARE_ROWS_OF)
TASKSIEVE_DECLARE_ROWS(StringRows)

}  // namespace tasksieve
