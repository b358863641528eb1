#include "arrays.hpp"
#include "blas.hpp"

namespace tasksieve {

namespace {

template <class F>
void take_pointer(nb::dict table, const char *name, F &target) {
    nb::object capsule = table[name];
    void *pointer = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (!pointer) throw nb::python_error();
    target = reinterpret_cast<F>(pointer);
}

void use_blas(nb::dict blas_table, nb::dict lapack_table) {
    take_pointer(blas_table, "dgemm", blas.dgemm);
    take_pointer(blas_table, "sgemm", blas.sgemm);
    take_pointer(blas_table, "sgemv", blas.sgemv);
    take_pointer(blas_table, "ssyrk", blas.ssyrk);
    take_pointer(blas_table, "dsyrk", blas.dsyrk);
    take_pointer(blas_table, "dtrsm", blas.dtrsm);
    take_pointer(lapack_table, "dpotrf", blas.dpotrf);
    take_pointer(lapack_table, "dpotrs", blas.dpotrs);
    take_pointer(lapack_table, "spotri", blas.spotri);
}

}  // namespace

void bind_blas(nb::module_ &m) { m.def("use_blas", &use_blas); }

}  // namespace tasksieve
