#include "descent_loop.hpp"

namespace tasksieve {

TASKSIEVE_ROW_KINDS(TASKSIEVE_DEFINE_ROWS, std::uint8_t)

}  // namespace tasksieve
