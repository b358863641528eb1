// Bindings of the sorted norm and its solvers: shapes are checked here once.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <stdexcept>
#include <tuple>

#include "sorted_norm.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tasksieve {
namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const double, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Indices = nb::ndarray<const index_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutRows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Maybe = std::optional<T>;

void require(bool condition, const char *message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class A>
auto data_or_null(const Maybe<A> &array) -> decltype(array->data()) {
    return array ? array->data() : nullptr;
}

void prox(SortedNorm &self, Rows rows, Vector<double> weights, double step, bool positive, OutRows out) {
    const index_t count = rows.shape(0), tasks = rows.shape(1);
    require(index_t(weights.size()) >= count, "a weight a row");
    require(index_t(out.shape(0)) == count && index_t(out.shape(1)) == tasks, "out has the wrong shape");
    nb::gil_scoped_release release;
    self.prox(rows.data(), count, tasks, weights.data(), step, positive, out.data());
}

double polar(SortedNorm &self, Rows rows, Vector<double> weights, bool positive) {
    require(weights.size() >= rows.shape(0), "a weight a row");
    nb::gil_scoped_release release;
    return self.polar(rows.data(), rows.shape(0), rows.shape(1), weights.data(), positive);
}

double value(SortedNorm &self, Rows rows, Vector<double> weights) {
    require(weights.size() >= rows.shape(0), "a weight a row");
    nb::gil_scoped_release release;
    return self.value(rows.data(), rows.shape(0), rows.shape(1), weights.data());
}

std::tuple<index_t, double, double> fista(SortedFista &self, Columns x, Vector<index_t> offsets, bool shared,
                                          Vector<double> target, Maybe<Rows> gram, Rows y_products, double y_squared,
                                          Vector<double> weights, bool positive, OutRows w, OutRows dual_w,
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
    require(index_t(offsets.size()) == tasks + 1, "offsets must cut the samples into tasks");
    require(index_t(weights.size()) >= count, "a weight a row");
    require(dual_w.shape(0) == w.shape(0) && dual_w.shape(1) == w.shape(1), "dual_w must be like w");
    require(index_t(target.size()) == offsets.data()[tasks], "target must be flat over the samples");
    if (gram) {
        require(index_t(gram->shape(0)) == count && index_t(gram->shape(1)) == count, "gram must be count x count");
        require(index_t(y_products.shape(0)) == count && index_t(y_products.shape(1)) == tasks,
                "y_products must be count x tasks");
    } else {
        require(index_t(x.shape(1)) == count, "x must have a column a row of w");
        require(index_t(target.size()) == (shared ? problem.rows * tasks : problem.rows), "x has the wrong rows");
    }
    require(check_every > 0 && curvature > 0.0, "check_every and curvature must be positive");
    nb::gil_scoped_release release;
    const SortedReport report = self.solve(problem, w.data(), dual_w.data(), tol, max_iter, check_every, curvature);
    return {report.iterations, report.gap, report.curvature};
}

void svrg(SortedSvrg &self, Maybe<Rows> dense, Maybe<Vector<double>> data, Maybe<Vector<std::int32_t>> indices,
          Maybe<Vector<std::int64_t>> indptr, Maybe<Vector<double>> centre, Maybe<Vector<index_t>> task_of,
          bool multinomial, Maybe<Vector<double>> root, Vector<double> weights, bool positive, bool intercept,
          OutRows w, OutVector b, Rows reference_z, Rows gradient, Vector<double> reference_b,
          Vector<double> b_gradient, Indices batches, double step) {
    StochasticProblem problem;
    const index_t count = w.shape(0), tasks = w.shape(1);
    if (dense) {
        problem.x.data = dense->data();
        problem.x.rows = dense->shape(0);
        require(index_t(dense->shape(1)) == count, "rows must have an entry a row of w");
    } else {
        require(data && indices && indptr && !task_of, "sparse rows need data, indices and indptr, and no task_of");
        problem.x.data = data->data();
        problem.x.indices = indices->data();
        problem.x.indptr = indptr->data();
        problem.x.rows = index_t(indptr->size()) - 1;
        problem.x.centre = data_or_null(centre);
        require(data->size() == indices->size() && problem.x.rows >= 0 &&
                    indptr->data()[problem.x.rows] == std::int64_t(data->size()),
                "inconsistent sparse rows");
        for (size_t q = 0; q < indices->size(); ++q)
            require(indices->data()[q] >= 0 && indices->data()[q] < count, "column index out of range");
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
    require(!root || index_t(root->size()) == rows, "root must have an entry a row");
    require(!centre || index_t(centre->size()) == count, "centre must have an entry a column");
    require(!task_of || index_t(task_of->size()) == rows, "task_of must have an entry a row");
    for (index_t i = 0; task_of && i < rows; ++i)
        require(task_of->data()[i] >= 0 && task_of->data()[i] < tasks, "task out of range");
    require(index_t(weights.size()) >= count, "a weight a row");
    require(index_t(gradient.shape(0)) == count && index_t(gradient.shape(1)) == tasks, "gradient must be like w");
    require(index_t(reference_z.shape(0)) == rows && index_t(reference_z.shape(1)) == (task_of ? 1 : tasks),
            "reference_z has the wrong shape");
    require(index_t(b.size()) == tasks && index_t(reference_b.size()) == tasks && index_t(b_gradient.size()) == tasks,
            "b must have an entry a task");
    for (size_t k = 0; k < batches.size(); ++k)
        require(batches.data()[k] >= 0 && batches.data()[k] < rows, "row out of range");
    require(batches.shape(1) > 0, "empty batches");
    nb::gil_scoped_release release;
    self.epoch(problem, w.data(), b.data(), reference_z.data(), gradient.data(), reference_b.data(),
               b_gradient.data(), batches.data(), batches.shape(0), batches.shape(1), step);
}

}  // namespace

void bind_sorted(nb::module_ &m) {
    nb::class_<SortedNorm>(m, "SortedNorm")
        .def(nb::init<>())
        .def("prox", &prox, "rows"_a.noconvert(), "weights"_a.noconvert(), "step"_a, "positive"_a,
             "out"_a.noconvert())
        .def("polar", &polar, "rows"_a.noconvert(), "weights"_a.noconvert(), "positive"_a)
        .def("value", &value, "rows"_a.noconvert(), "weights"_a.noconvert());
    nb::class_<SortedFista>(m, "SortedFista")
        .def(nb::init<>())
        .def("solve", &fista, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a, "target"_a.noconvert(),
             "gram"_a.none().noconvert(), "y_products"_a.noconvert(), "y_squared"_a, "weights"_a.noconvert(),
             "positive"_a, "w"_a.noconvert(), "dual_w"_a.noconvert(), "tol"_a, "max_iter"_a, "check_every"_a,
             "curvature"_a, "threads"_a);
    nb::class_<SortedSvrg>(m, "SortedSvrg")
        .def(nb::init<>())
        .def("epoch", &svrg, "dense"_a.none().noconvert(), "data"_a.none().noconvert(),
             "indices"_a.none().noconvert(), "indptr"_a.none().noconvert(), "centre"_a.none().noconvert(),
             "task_of"_a.none().noconvert(), "multinomial"_a, "root"_a.none().noconvert(), "weights"_a.noconvert(),
             "positive"_a, "intercept"_a, "w"_a.noconvert(), "b"_a.noconvert(), "reference_z"_a.noconvert(),
             "gradient"_a.noconvert(), "reference_b"_a.noconvert(), "b_gradient"_a.noconvert(),
             "batches"_a.noconvert(), "step"_a);
}

}  // namespace tasksieve
