#include "arrays.hpp"
#include "gram_path.hpp"
#include "moments.hpp"

namespace tasksieve {

namespace {

void py_add_products(Columns<double> x, Columns<double> y, Rows<double> z, Indices offsets, int threads,
                     OutRows<double> cross, OutVector<double> labels, OutCube<double> beside, OutCube<double> nuisance,
                     OutRows<double> explained) {
    ProductSums is;
    is.rows = x.shape(0);
    is.features = x.shape(1);
    is.columns = y.shape(1);
    is.n_nuisance = z.shape(0);
    is.matrices = beside.shape(0);
    const index_t tasks = length(labels);
    require(index_t(y.shape(0)) == is.rows && (is.n_nuisance == 0 || index_t(z.shape(1)) == is.rows),
            "x, y and z must have the same rows");
    require(is.matrices == 1 ? is.columns == tasks
                             : is.columns == 1 && is.matrices == tasks && check_offsets(offsets, is.rows) == tasks,
            "one matrix with labels of all tasks, or one a task");
    require(shaped(cross, tasks, is.features) && shaped(beside, is.matrices, is.n_nuisance, is.features) &&
                shaped(nuisance, is.matrices, is.n_nuisance, is.n_nuisance) && shaped(explained, tasks, is.n_nuisance),
            "sums have the wrong size");
    is.x = x.data();
    is.y = y.data();
    is.z = z.data();
    is.offsets = offsets.data();
    is.cross = cross.data();
    is.labels = labels.data();
    is.beside = beside.data();
    is.nuisance = nuisance.data();
    is.explained = explained.data();
    nb::gil_scoped_release release;
    add_products(is, threads);
}

bool py_take_out_constant(OutRows<double> gram, OutRows<double> cross, OutVector<double> labels, Cube<double> beside,
                          Cube<double> nuisance, Rows<double> explained, double limit, int threads,
                          OutCube<double> coefficients, OutRows<double> fit, OutRows<double> sizes,
                          OutVector<double> label_sizes, OutRows<double> nuisance_sizes) {
    Elimination is;
    is.matrices = gram.shape(0);
    is.tasks = cross.shape(0);
    is.features = cross.shape(1);
    is.n_nuisance = beside.shape(1);
    require(shaped(gram, is.matrices, panel_cells(is.features)), "gram must hold the panels of square matrices");
    require(is.matrices == 1 || is.matrices == is.tasks, "one matrix, or one a task");
    require(shaped(beside, is.matrices, is.n_nuisance, is.features) &&
                shaped(coefficients, is.matrices, is.n_nuisance, is.features) &&
                shaped(nuisance, is.matrices, is.n_nuisance, is.n_nuisance) &&
                shaped(nuisance_sizes, is.matrices, is.n_nuisance),
            "moments of nuisance columns have the wrong size");
    require(shaped(explained, is.tasks, is.n_nuisance) && shaped(fit, is.tasks, is.n_nuisance) &&
                shaped(sizes, is.matrices, is.features) && length(labels) == is.tasks &&
                length(label_sizes) == is.tasks,
            "moments of labels, or sizes, have the wrong size");
    is.gram = gram.data();
    is.cross = cross.data();
    is.labels = labels.data();
    is.beside = beside.data();
    is.nuisance = nuisance.data();
    is.explained = explained.data();
    is.coefficients = coefficients.data();
    is.fit = fit.data();
    is.sizes = sizes.data();
    is.label_sizes = label_sizes.data();
    is.nuisance_sizes = nuisance_sizes.data();
    nb::gil_scoped_release release;
    return take_out_constant(is, limit, threads);
}

void py_storing_loss(Indices counts, Cube<double> facts, Vector<double> label_sizes, Vector<double> totals, double sums,
                     index_t n_nuisance, bool intercept, OutVector<double> added, OutVector<double> lost) {
    StoringLoss is;
    is.n_values = length(counts);
    is.tasks = length(label_sizes);
    require(n_nuisance >= index_t(intercept) && n_nuisance <= 1, "at most one nuisance column");
    require(shaped(facts, 4, is.n_values, is.tasks) && length(totals) == is.tasks && length(added) == is.n_values &&
                length(lost) == is.n_values,
            "facts, totals, added or lost has the wrong size");
    is.n_nuisance = n_nuisance;
    is.intercept = intercept;
    is.counts = counts.data();
    is.facts = facts.data();
    is.label_sizes = label_sizes.data();
    is.totals = totals.data();
    is.sums = sums;
    is.added = added.data();
    is.lost = lost.data();
    storing_loss(is);
}

}  // namespace

void bind_moments(nb::module_ &m) {
    m.def("add_products", &py_add_products, array("x"), array("y"), array("z"), array("offsets"), "threads"_a,
          array("cross"), array("labels"), array("beside"), array("nuisance"), array("explained"));
    m.def("take_out_constant", &py_take_out_constant, array("gram"), array("cross"), array("labels"), array("beside"),
          array("nuisance"), array("explained"), "limit"_a, "threads"_a, array("coefficients"), array("fit"),
          array("sizes"), array("label_sizes"), array("nuisance_sizes"));
    m.def("storing_loss", &py_storing_loss, array("counts"), array("facts"), array("label_sizes"), array("totals"),
          "sums"_a, "n_nuisance"_a, "intercept"_a, array("added"), array("lost"));
}

}  // namespace tasksieve
