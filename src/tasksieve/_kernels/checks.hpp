// Looks at whole arrays before they are used: loops without a way out, which fill the processor's vectors.
#pragma once
#include "common.hpp"

namespace tasksieve {

// Whether every index is at least 0 and below `length`.
bool all_inside(const std::int32_t *index, index_t count, index_t length);
bool all_inside(const std::int64_t *index, index_t count, index_t length);

// Whether none of the exponents is the one of NaN and infinity, told by integers: no arithmetic mode matters.
bool all_finite(const double *values, index_t count);

}  // namespace tasksieve
