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

void py_stored_rows(Rows<double> rows, Rows<double> raw, Rows<double> shifts, Rows<double> sizes,
                    Cube<double> loadings, Cube<double> from_basis, Rows<double> nuisance,
                    Rows<double> nuisance_shifts, bool intercept, Vector<double> label_shift, OutRows<double> pulled,
                    OutRows<double> left, OutRows<double> facts) {
    const index_t count = rows.shape(0), tasks = rows.shape(1), n_basis = loadings.shape(0);
    const index_t n_nuisance = nuisance.shape(0);
    require(shaped(raw, count, tasks) && shaped(shifts, count, tasks) && shaped(sizes, count, tasks) &&
                shaped(loadings, n_basis, count, tasks),
            "raw, shifts, sizes and loadings: as the rows");
    require(shaped(from_basis, tasks, n_nuisance, n_basis), "from_basis must be tasks x nuisance x basis");
    require(shaped(nuisance, n_nuisance, tasks) && shaped(nuisance_shifts, n_nuisance, tasks) &&
                shaped(left, n_nuisance, tasks) && n_nuisance >= index_t(intercept),
            "nuisance, its shifts and what is left: nuisance columns x tasks");
    require(length(label_shift) == tasks && shaped(pulled, n_basis, tasks) && shaped(facts, 4, tasks),
            "label_shift, pulled or facts has the wrong size");
    double *own = facts.data();
    stored_rows({rows.data(), raw.data(), count, tasks, shifts.data(), sizes.data(), loadings.data(), n_basis,
                 from_basis.data(), nuisance.data(), nuisance_shifts.data(), n_nuisance, intercept, label_shift.data(),
                 pulled.data(), left.data(), own, own + tasks, own + 2 * tasks, own + 3 * tasks});
}

void py_stored_values(Indices counts, Indices places, Rows<double> rows, Rows<double> raw, Rows<double> sizes,
                      Rows<double> shifts, Cube<double> coefficients, Rows<double> fit, Rows<double> nuisance_shifts,
                      Vector<double> label_shifts, bool intercept, OutCube<double> left, OutCube<double> facts) {
    StoredValues is;
    is.n_values = length(counts);
    is.tasks = rows.shape(1);
    is.matrices = sizes.shape(0);
    is.features = sizes.shape(1);
    is.n_nuisance = coefficients.shape(1);
    index_t count = 0;
    for (index_t v = 0; v < is.n_values; ++v) {
        require(counts.data()[v] >= 0 && counts.data()[v] <= length(places) - count, "counts must add up to the rows");
        count += counts.data()[v];
    }
    require(count == length(places), "counts must add up to the rows");
    check_indices(places, is.features, "place out of range");
    require(shaped(rows, count, is.tasks) && shaped(raw, count, is.tasks), "rows and raw must be rows x tasks");
    require(is.matrices == 1 || is.matrices == is.tasks, "one matrix, or one a task");
    require(shaped(shifts, is.matrices, is.features) && shaped(coefficients, is.matrices, is.n_nuisance, is.features),
            "shifts and coefficients: as the sizes");
    require(shaped(fit, is.tasks, is.n_nuisance) && shaped(nuisance_shifts, is.n_nuisance, is.tasks) &&
                length(label_shifts) == is.tasks && is.n_nuisance >= index_t(intercept),
            "fit, nuisance_shifts or label_shifts has the wrong size");
    require(shaped(left, is.n_values, is.n_nuisance, is.tasks) && shaped(facts, 4, is.n_values, is.tasks),
            "left or facts has the wrong size");
    is.counts = counts.data();
    is.places = places.data();
    is.rows = rows.data();
    is.raw = raw.data();
    is.sizes = sizes.data();
    is.shifts = shifts.data();
    is.coefficients = coefficients.data();
    is.fit = fit.data();
    is.nuisance_shifts = nuisance_shifts.data();
    is.label_shifts = label_shifts.data();
    is.intercept = intercept;
    is.left = left.data();
    const index_t size = is.n_values * is.tasks;
    is.exact = facts.data();
    is.rest = is.exact + size;
    is.total = is.rest + size;
    is.reach = is.total + size;
    nb::gil_scoped_release release;
    stored_values(is);
}

void py_measure_against(Rows<double> z, Vector<double> r, Indices offsets, Rows<double> inverse, Rows<double> slack,
                        OutRows<double> products, OutVector<double> norms) {
    const index_t tasks = check_offsets(offsets, length(r)), count = z.shape(0);
    require(count == 0 || index_t(z.shape(1)) == length(r), "z and r must have the same size");
    require(shaped(products, count, tasks) && length(norms) == tasks, "products or norms has the wrong size");
    require(shaped(inverse, count, tasks) && shaped(slack, count, tasks), "inverse or slack has the wrong size");
    nb::gil_scoped_release release;
    measure_against(z.data(), count, r.data(), offsets.data(), tasks, inverse.data(), slack.data(), products.data(),
                    norms.data());
}

}  // namespace

void bind_centring(nb::module_ &m) {
    m.def("centre", &py_centre, array("x"), array("offsets"), "shared"_a, array("w"), array("basis"), "shifted"_a,
          "threads"_a, array("out"), array("squares"), array("shifts"), array("loadings"));
    m.def("exact_products", &py_exact_products, array("a"), array("b"), array("offsets"), array("out"), array("rest"));
    m.def("exact_columns", &py_exact_columns, array("terms"), array("a"), array("b"), array("out"), array("rest"),
          array("sizes"));
    m.def("stored_rows", &py_stored_rows, array("rows"), array("raw"), array("shifts"), array("sizes"),
          array("loadings"), array("from_basis"), array("nuisance"), array("nuisance_shifts"), "intercept"_a,
          array("label_shift"), array("pulled"), array("left"), array("facts"));
    m.def("stored_values", &py_stored_values, array("counts"), array("positions"), array("rows"), array("raw"),
          array("sizes"), array("shifts"), array("coefficients"), array("fit"), array("nuisance_shifts"),
          array("label_shifts"), "intercept"_a, array("left"), array("facts"));
    m.def("measure_against", &py_measure_against, array("z"), array("r"), array("offsets"), array("inverse"),
          array("slack"), array("products"), array("norms"));
}

}  // namespace tasksieve
