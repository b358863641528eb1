#include "arrays.hpp"
#include "centring.hpp"

namespace tasksieve {

namespace {

void py_centre(Columns<double> x, Indices offsets, bool shared, Vector<double> w, Rows<double> basis, bool shifted,
               int threads, OutColumns<double> out, OutRows<double> squares, OutRows<double> shifts,
               OutRows<double> loadings) {
    const index_t rows = x.shape(0), count = x.shape(1);
    const index_t tasks = shared ? tasks_of(offsets) : check_offsets(offsets, rows);
    const index_t samples = shared ? rows * tasks : rows, n_basis = basis.shape(0);
    for (index_t t = 0; shared && t <= tasks; ++t)
        require(offsets.data()[t] == t * rows, "offsets of a shared matrix must be multiples of its rows");
    require(length(w) == samples, "w has the wrong size");
    require(n_basis == 0 || index_t(basis.shape(1)) == samples, "basis has the wrong shape");
    require(shaped(out, samples, count), "out has the wrong shape");
    require(shaped(squares, count, tasks) && shaped(shifts, count, tasks), "squares or shifts has the wrong shape");
    require(shaped(loadings, n_basis * count, tasks), "loadings has the wrong shape");
    nb::gil_scoped_release release;
    centre(x.data(), rows, offsets.data(), tasks, shared, count, w.data(), basis.data(), n_basis, shifted, threads,
           out.data(), squares.data(), shifts.data(), loadings.data());
}

void py_exact_products(Vector<double> a, Vector<double> b, Indices offsets, OutVector<double> out,
                       OutVector<double> rest) {
    const index_t tasks = check_offsets(offsets, length(a));
    require(length(b) == length(a), "a and b must have the same size");
    require(length(out) == tasks && length(rest) == tasks, "out or rest has the wrong size");
    nb::gil_scoped_release release;
    exact_products(a.data(), b.data(), offsets.data(), tasks, out.data(), rest.data());
}

void py_exact_columns(Rows<double> terms, Rows<double> a, Rows<double> b, OutVector<double> out,
                      OutVector<double> rest, OutVector<double> sizes) {
    const index_t tasks = terms.shape(1), count = a.shape(0);
    require(shaped(a, count, tasks) && shaped(b, count, tasks), "a and b: one column a task");
    require(length(out) == tasks && length(rest) == tasks && length(sizes) == tasks, "one sum a task");
    exact_columns(terms.data(), terms.shape(0), a.data(), b.data(), count, tasks, out.data(), rest.data(),
                  sizes.data());
}

void py_measure_against(Rows<double> z, Vector<double> r, Indices offsets, OutRows<double> products,
                        OutVector<double> norms) {
    const index_t tasks = check_offsets(offsets, length(r)), count = z.shape(0);
    require(count == 0 || index_t(z.shape(1)) == length(r), "z and r must have the same size");
    require(shaped(products, count, tasks) && length(norms) == tasks, "products or norms has the wrong size");
    nb::gil_scoped_release release;
    measure_against(z.data(), count, r.data(), offsets.data(), tasks, products.data(), norms.data());
}

}  // namespace

void bind_centring(nb::module_ &m) {
    m.def("centre", &py_centre, array("x"), array("offsets"), "shared"_a, array("w"), array("basis"), "shifted"_a,
          "threads"_a, array("out"), array("squares"), array("shifts"), array("loadings"));
    m.def("exact_products", &py_exact_products, array("a"), array("b"), array("offsets"), array("out"), array("rest"));
    m.def("exact_columns", &py_exact_columns, array("terms"), array("a"), array("b"), array("out"), array("rest"),
          array("sizes"));
    m.def("measure_against", &py_measure_against, array("z"), array("r"), array("offsets"), array("products"),
          array("norms"));
}

}  // namespace tasksieve
