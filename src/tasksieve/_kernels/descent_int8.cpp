#include "descent_loop.hpp"

namespace tasksieve {

TASKSIEVE_ROW_KINDS(TASKSIEVE_DEFINE_ROWS, std::int8_t)

}  // namespace tasksieve
