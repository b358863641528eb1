#include "arrays.hpp"
#include "dual_coordinate.hpp"

namespace tasksieve {

namespace {

GraphProblem problem_of(const GraphRows &rows, int loss, double epsilon, double bias, const Indices &offsets,
                        const Maybe<Indices> &row_of, const Vector<double> &y, const Vector<double> &c,
                        const Rows<double> &m) {
    GraphProblem p;
    p.loss = loss;
    p.epsilon = epsilon;
    p.bias = bias;
    p.samples = length(y);
    p.tasks = check_offsets(offsets, p.samples);
    p.width = rows.features() + (bias > 0 ? 1 : 0);
    p.offsets = offsets.data();
    require(p.tasks >= 1, "at least one task");
    require(loss >= HINGE && loss <= SQUARED_EPSILON, "unknown loss");
    require(length(c) == p.samples, "one c a sample");
    require(shaped(m, p.tasks, p.tasks), "m is tasks x tasks");
    if (row_of) {
        require(length(*row_of) == p.samples, "one row a sample");
        check_indices(*row_of, rows.rows(), "row out of range");
    } else {
        require(p.samples <= rows.rows(), "more samples than rows");
    }
    p.row_of = data_or_null(row_of);
    p.y = y.data();
    p.c = c.data();
    p.m = m.data();
    return p;
}

// The problem is checked once and kept; the arrays are kept alive by the Python object.
struct Problem {
    GraphRows rows;
    GraphProblem p;

    template <class W, class Table>
    void check_table(const Table &table) const {
        require(rows.strings() == std::is_same_v<W, float>, "strings take float32 tables, other rows float64");
        require(!table || shaped(*table, p.tasks, p.width), "a table is tasks x width");
    }
};

template <class W>
std::tuple<index_t, index_t, double, double, double> py_descent(
    const Problem &problem, Maybe<Vector<double>> squares, OutVector<double> beta, OutRows<W> w,
    OutVector<index_t> active, OutVector<index_t> counts, index_t max_epochs, double target, double lowest,
    double highest, std::uint64_t seed) {
    const GraphProblem &p = problem.p;
    problem.check_table<W>(&w);
    require(!squares || length(*squares) == problem.rows.rows(), "one square a row");
    require(length(beta) == p.samples && length(active) == p.samples && length(counts) == p.tasks,
            "beta, active, counts");
    for (index_t t = 0; t < p.tasks; ++t) {
        require(counts.data()[t] >= 0 && counts.data()[t] <= p.offsets[t + 1] - p.offsets[t], "counts");
        for (index_t k = p.offsets[t]; k < p.offsets[t] + counts.data()[t]; ++k) {
            const index_t i = active.data()[k];
            require(i >= p.offsets[t] && i < p.offsets[t + 1] && p.c[i] > 0, "active");
        }
    }
    const Descent<W> descent{beta.data(), w.data(), active.data(), counts.data(), data_or_null(squares),
                             max_epochs,  target,   lowest,        highest,       seed};
    nb::gil_scoped_release release;
    const DescentReport report = dual_descent(problem.rows.any, p, descent);
    return {report.epochs, report.visits, report.estimate, report.lowest, report.highest};
}

template <class W>
void py_pass(const Problem &problem, Maybe<Rows<W>> w, Maybe<Vector<double>> beta, int threads,
             Maybe<OutVector<double>> scores, Maybe<OutRows<double>> v) {
    const index_t samples = problem.p.samples;
    problem.check_table<W>(w);
    problem.check_table<W>(v);
    require(w.has_value() == scores.has_value() && beta.has_value() == v.has_value(), "w with scores, beta with v");
    require(!beta || length(*beta) == samples, "one beta a sample");
    require(!scores || length(*scores) == samples, "one score a sample");
    nb::gil_scoped_release release;
    graph_pass<W>(problem.rows.any, problem.p, data_or_null(w), data_or_null(beta), threads, data_or_null(scores),
                  data_or_null(v));
}

template <class W>
void py_measure(const Problem &problem, Rows<W> w, Vector<double> intercept, Vector<double> beta, int threads,
                OutVector<double> scores, OutVector<double> sizes, Maybe<OutRows<double>> v) {
    const index_t samples = problem.p.samples;
    problem.check_table<W>(&w);
    problem.check_table<W>(v);
    require(length(intercept) == problem.p.tasks, "one intercept a task");
    require(length(beta) == samples && length(scores) == samples && length(sizes) == samples,
            "one beta, score and size a sample");
    nb::gil_scoped_release release;
    measure_rows<W>(problem.rows.any, problem.p, w.data(), intercept.data(), beta.data(), threads, scores.data(),
                    sizes.data(), data_or_null(v));
}

std::tuple<double, double> py_fenchel(const Problem &problem, Vector<double> scores, Vector<double> beta) {
    require(length(scores) == problem.p.samples && length(beta) == problem.p.samples, "sizes");
    nb::gil_scoped_release release;
    const LossSums sums = fenchel_sums(problem.p, scores.data(), beta.data());
    return {sums.loss, sums.terms};
}

template <class W>
std::tuple<double, double> py_rebuild(const Problem &problem, Vector<double> beta, int threads, OutRows<W> w) {
    problem.check_table<W>(&w);
    require(length(beta) == problem.p.samples, "one beta a sample");
    nb::gil_scoped_release release;
    const TableSquares squares = rebuild_table(problem.rows.any, problem.p, beta.data(), threads, w.data());
    return {squares.v, squares.w};
}

std::tuple<double, double> py_smoothed_loss(const Problem &problem, Vector<double> scores, double mu, int threads,
                                            OutVector<double> beta, OutVector<double> curvature) {
    const index_t n = problem.p.samples;
    require(length(scores) == n && length(beta) == n && length(curvature) == n, "sizes");
    nb::gil_scoped_release release;
    const LossSums sums = smoothed_loss(problem.p, scores.data(), mu, threads, beta.data(), curvature.data());
    return {sums.loss, sums.terms};
}

std::tuple<double, double> py_smoothed_slope(const Problem &problem, Vector<double> scores, Vector<double> direction,
                                             double step, double mu, int threads) {
    require(length(scores) == problem.p.samples && length(direction) == problem.p.samples, "sizes");
    nb::gil_scoped_release release;
    return smoothed_slope(problem.p, scores.data(), direction.data(), step, mu, threads);
}

template <class W>
void bind_table(nb::module_ &m, const char *pass) {
    m.def("dual_descent", &py_descent<W>, "problem"_a, maybe("squares"), array("beta"), array("w"), array("active"),
          array("counts"), "max_epochs"_a, "target"_a, "lowest"_a, "highest"_a, "seed"_a);
    m.def("rebuild_table", &py_rebuild<W>, "problem"_a, array("beta"), "threads"_a, array("w"));
    m.def("measure_rows", &py_measure<W>, "problem"_a, array("w"), array("intercept"), array("beta"), "threads"_a,
          array("scores"), array("sizes"), maybe("v"));
    m.def(pass, &py_pass<W>, "problem"_a, maybe("w"), maybe("beta"), "threads"_a, maybe("scores"), maybe("v"));
}

}  // namespace

void bind_dual_coordinate(nb::module_ &m) {
    nb::class_<Problem>(m, "GraphProblem");
    m.def(
        "graph_problem",
        [](const GraphRows &rows, int loss, double epsilon, double bias, Indices offsets, Maybe<Indices> row_of,
           Vector<double> y, Vector<double> c, Rows<double> matrix) {
            return Problem{rows, problem_of(rows, loss, epsilon, bias, offsets, row_of, y, c, matrix)};
        },
        "rows"_a, "loss"_a, "epsilon"_a, "bias"_a, array("offsets"), maybe("row_of"), array("y"), array("c"),
        array("m"), nb::keep_alive<0, 1>(), nb::keep_alive<0, 5>(), nb::keep_alive<0, 6>(), nb::keep_alive<0, 7>(),
        nb::keep_alive<0, 8>(), nb::keep_alive<0, 9>());
    bind_table<double>(m, "graph_pass");
    bind_table<float>(m, "graph_pass_single");
    m.def("fenchel_sums", &py_fenchel, "problem"_a, array("scores"), array("beta"));
    m.def("smoothed_loss", &py_smoothed_loss, "problem"_a, array("scores"), "mu"_a, "threads"_a, array("beta"),
          array("curvature"));
    m.def("smoothed_slope", &py_smoothed_slope, "problem"_a, array("scores"), array("direction"), "step"_a, "mu"_a,
          "threads"_a);
}

}  // namespace tasksieve
