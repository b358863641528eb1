#include "arrays.hpp"
#include "nodewise.hpp"

namespace tasksieve {

namespace {

void py_nodewise(Columns<double> x, Indices targets, Vector<double> start, index_t values, double ratio, double target,
                 double growth, double tolerance, index_t rounds, int threads, OutRows<double> z,
                 OutVector<double> strengths) {
    NodewiseProblem p;
    p.x = x.data();
    p.rows = x.shape(0);
    p.features = x.shape(1);
    check_indices(targets, p.features);
    const index_t count = length(targets);
    require(length(start) == count && length(strengths) == count, "one strength a target");
    require(std::all_of(start.data(), start.data() + count, [](double v) { return v > 0.0 && std::isfinite(v); }),
            "strengths must be positive");
    require(shaped(z, count, p.rows), "z must be targets x rows");
    p.values = values;
    p.ratio = ratio;
    p.target = target;
    p.growth = growth;
    p.tolerance = tolerance;
    p.rounds = rounds;
    p.threads = threads;
    nb::gil_scoped_release release;
    nodewise(p, targets.data(), start.data(), count, z.data(), strengths.data());
}

}  // namespace

void bind_nodewise(nb::module_ &m) {
    m.def("nodewise", &py_nodewise, array("x"), array("targets"), array("start"), "values"_a, "ratio"_a, "target"_a,
          "growth"_a, "tolerance"_a, "rounds"_a, "threads"_a, array("z"), array("strengths"));
}

}  // namespace tasksieve
