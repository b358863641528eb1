#include "descent_loop.hpp"

namespace tasksieve {

TASKSIEVE_DEFINE_ROWS(StringRows)

}  // namespace tasksieve
