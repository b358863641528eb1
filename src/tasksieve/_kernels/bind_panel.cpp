#include "arrays.hpp"
#include "panel.hpp"

namespace tasksieve {

void bind_panel(nb::module_ &m) {
    m.def("wide_registers", &wide_registers);
    m.def("allow_wide_registers", &allow_wide_registers, "allow"_a);
}

}  // namespace tasksieve
