#include "arrays.hpp"
#include "parallel.hpp"

namespace tasksieve {

void bind_parallel(nb::module_ &m) { m.def("standing_threads", &standing_threads); }

}  // namespace tasksieve
