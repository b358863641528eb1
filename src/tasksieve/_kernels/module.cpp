// The module: what each topic binds.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace tasksieve {

void bind_algebra(nb::module_ &m);
void bind_anchors(nb::module_ &m);
void bind_blas(nb::module_ &m);
void bind_centring(nb::module_ &m);
void bind_coordinate(nb::module_ &m);
void bind_cox(nb::module_ &m);
void bind_dual_averaging(nb::module_ &m);
void bind_dual_coordinate(nb::module_ &m);
void bind_genotypes(nb::module_ &m);
void bind_gram(nb::module_ &m);
void bind_gram_path(nb::module_ &m);
void bind_graph_rows(nb::module_ &m);
void bind_moments(nb::module_ &m);
void bind_nodewise(nb::module_ &m);
void bind_panel(nb::module_ &m);
void bind_parallel(nb::module_ &m);
void bind_passes(nb::module_ &m);
void bind_smooth_path(nb::module_ &m);
void bind_sorted_columns(nb::module_ &m);
void bind_sorted_norm(nb::module_ &m);

}  // namespace tasksieve

NB_MODULE(_core, m) {
    using namespace tasksieve;
    // Models that live until the interpreter ends keep their kernels' state alive: no leak.
    nb::set_leak_warnings(false);
    for (auto *bind : {bind_algebra, bind_anchors, bind_blas, bind_centring, bind_coordinate, bind_cox, bind_dual_averaging,
                       bind_dual_coordinate, bind_genotypes, bind_gram, bind_gram_path, bind_graph_rows, bind_moments,
                       bind_nodewise, bind_panel, bind_parallel, bind_passes, bind_smooth_path,
                       bind_sorted_columns, bind_sorted_norm})
        bind(m);
}
