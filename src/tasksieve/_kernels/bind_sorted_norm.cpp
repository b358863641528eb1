#include "arrays.hpp"
#include "sorted_norm.hpp"

namespace tasksieve {

namespace {

void prox(SortedNorm &self, Rows<double> rows, Vector<double> weights, double step, bool positive, OutRows<double> out) {
    const index_t count = rows.shape(0), tasks = rows.shape(1);
    require(length(weights) >= count, "a weight a row");
    require(shaped(out, count, tasks), "out has the wrong shape");
    nb::gil_scoped_release release;
    self.prox(rows.data(), count, tasks, weights.data(), step, positive, out.data());
}

double polar(SortedNorm &self, Rows<double> rows, Vector<double> weights, bool positive) {
    require(weights.size() >= rows.shape(0), "a weight a row");
    nb::gil_scoped_release release;
    return self.polar(rows.data(), rows.shape(0), rows.shape(1), weights.data(), positive);
}

double value(SortedNorm &self, Rows<double> rows, Vector<double> weights) {
    require(weights.size() >= rows.shape(0), "a weight a row");
    nb::gil_scoped_release release;
    return self.value(rows.data(), rows.shape(0), rows.shape(1), weights.data());
}

std::tuple<index_t, double, double> fista(SortedFista &self, Columns<double> x, Indices offsets, bool shared,
                                          Vector<double> target, Maybe<Rows<double>> gram, Rows<double> y_products, double y_squared,
                                          Vector<double> weights, bool positive, OutRows<double> w, OutRows<double> dual_w,
                                          double tol, index_t max_iter, index_t check_every, double curvature,
                                          int threads) {
    SortedProblem problem;
    problem.x = x.data();
    problem.rows = x.shape(0);
    problem.count = w.shape(0);
    problem.tasks = w.shape(1);
    problem.offsets = offsets.data();
    problem.shared = shared;
    problem.target = target.data();
    problem.gram = data_or_null(gram);
    problem.y_products = y_products.data();
    problem.y_squared = y_squared;
    problem.weights = weights.data();
    problem.positive = positive;
    problem.threads = threads;
    const index_t count = problem.count, tasks = problem.tasks;
    require(check_offsets(offsets, length(target)) == tasks, "offsets must cut the samples into tasks");
    require(length(weights) >= count, "a weight a row");
    require(shaped(dual_w, count, tasks), "dual_w must be like w");
    if (gram) {
        require(shaped(*gram, count, count), "gram must be count x count");
        require(shaped(y_products, count, tasks), "y_products must be count x tasks");
    } else {
        require(index_t(x.shape(1)) == count, "x must have a column a row of w");
        require(length(target) == (shared ? problem.rows * tasks : problem.rows), "x has the wrong rows");
    }
    require(check_every > 0 && curvature > 0.0, "check_every and curvature must be positive");
    nb::gil_scoped_release release;
    const SortedReport report = self.solve(problem, w.data(), dual_w.data(), tol, max_iter, check_every, curvature);
    return {report.iterations, report.gap, report.curvature};
}

void svrg(SortedSvrg &self, Maybe<Rows<double>> dense, Maybe<Vector<double>> data, Maybe<Vector<std::int32_t>> indices,
          Maybe<Vector<std::int64_t>> indptr, Maybe<Vector<double>> centre, Maybe<Indices> task_of,
          bool multinomial, Maybe<Vector<double>> root, Vector<double> weights, bool positive, bool intercept,
          OutRows<double> w, OutVector<double> b, Rows<double> reference_z, Rows<double> gradient, Vector<double> reference_b,
          Vector<double> b_gradient, Rows<index_t> batches, double step) {
    StochasticProblem problem;
    const index_t count = w.shape(0), tasks = w.shape(1);
    if (dense) {
        problem.x.dense = dense->data();
        problem.x.rows = dense->shape(0);
        require(index_t(dense->shape(1)) == count, "rows must have an entry a row of w");
    } else {
        require(data && indices && indptr && !task_of, "sparse rows need data, indices and indptr, and no task_of");
        problem.x.sparse = compressed(*data, *indices, *indptr, count);
        problem.x.rows = problem.x.sparse.lines;
        problem.x.centre = data_or_null(centre);
    }
    problem.x.count = count;
    problem.tasks = tasks;
    problem.task_of = data_or_null(task_of);
    problem.multinomial = multinomial;
    problem.root = data_or_null(root);
    problem.weights = weights.data();
    problem.positive = positive;
    problem.intercept = intercept;
    const index_t rows = problem.x.rows;
    require(!root || length(*root) == rows, "root must have an entry a row");
    require(!centre || length(*centre) == count, "centre must have an entry a column");
    require(!task_of || length(*task_of) == rows, "task_of must have an entry a row");
    if (task_of) check_indices(*task_of, tasks, "task out of range");
    require(length(weights) >= count, "a weight a row");
    require(shaped(gradient, count, tasks), "gradient must be like w");
    require(shaped(reference_z, rows, task_of ? 1 : tasks), "reference_z has the wrong shape");
    require(length(b) == tasks && length(reference_b) == tasks && length(b_gradient) == tasks,
            "b must have an entry a task");
    require(all_inside(batches.data(), length(batches), rows), "row out of range");
    require(batches.shape(1) > 0, "empty batches");
    nb::gil_scoped_release release;
    self.epoch(problem, w.data(), b.data(), reference_z.data(), gradient.data(), reference_b.data(),
               b_gradient.data(), batches.data(), batches.shape(0), batches.shape(1), step);
}

}  // namespace

void bind_sorted_norm(nb::module_ &m) {
    nb::class_<SortedNorm>(m, "SortedNorm")
        .def(nb::init<>())
        .def("prox", &prox, array("rows"), array("weights"), "step"_a, "positive"_a, array("out"))
        .def("polar", &polar, array("rows"), array("weights"), "positive"_a)
        .def("value", &value, array("rows"), array("weights"));
    nb::class_<SortedFista>(m, "SortedFista")
        .def(nb::init<>())
        .def("solve", &fista, array("x"), array("offsets"), "shared"_a, array("target"), maybe("gram"),
             array("y_products"), "y_squared"_a, array("weights"), "positive"_a, array("w"), array("dual_w"), "tol"_a,
             "max_iter"_a, "check_every"_a, "curvature"_a, "threads"_a);
    nb::class_<SortedSvrg>(m, "SortedSvrg")
        .def(nb::init<>())
        .def("epoch", &svrg, maybe("dense"), maybe("data"), maybe("indices"), maybe("indptr"), maybe("centre"),
             maybe("task_of"), "multinomial"_a, maybe("root"), array("weights"), "positive"_a, "intercept"_a,
             array("w"), array("b"), array("reference_z"), array("gradient"), array("reference_b"),
             array("b_gradient"), array("batches"), "step"_a);
}

}  // namespace tasksieve
