#include "arrays.hpp"
#include "gram_path.hpp"

namespace tasksieve {

namespace {

// The path and the arrays that it reads.
class PyGramPath {
  public:
    PyGramPath(Rows<double> gram, Rows<double> cross, Vector<double> labels, Rows<double> sizes,
               Vector<double> label_sizes, Vector<double> group, Vector<double> l1, bool positive, double rounding,
               double gauge_error, index_t room, double rows, int threads)
        : gram_(gram), cross_(cross), sizes_(sizes), labels_(labels), label_sizes_(label_sizes), group_(group), l1_(l1),
          path_(checked(gram, cross, labels, sizes, label_sizes, group, l1, positive, rounding, gauge_error, room,
                        rows, threads)) {}

    nb::tuple advance(Vector<double> lams, Vector<double> ridges, Vector<double> goals, index_t max_epochs,
                      double budget) {
        const index_t count = length(lams);
        require(length(ridges) == count && length(goals) == count, "one ridge and one goal a strength");
        for (index_t v = 0; v < count; ++v)
            require(lams.data()[v] > 0.0 && std::isfinite(lams.data()[v]), "strengths must be positive");
        GramStop stop;
        {
            nb::gil_scoped_release release;
            stop = path_.advance(lams.data(), ridges.data(), goals.data(), count, max_epochs, budget);
        }
        // Columns, not objects: a value of a small problem takes less time than its numbers would as objects.
        const std::size_t found = path_.values.size();
        std::vector<double> facts;
        facts.reserve(7 * found);
        const auto column = [&](auto of) {
            for (const GramValue &v : path_.values) facts.push_back(static_cast<double>(of(v)));
        };
        column([](const GramValue &v) { return v.objective; });
        column([](const GramValue &v) { return v.objective_error; });
        column([](const GramValue &v) { return v.gap; });
        column([](const GramValue &v) { return v.seconds; });
        column([](const GramValue &v) { return v.epochs; });
        column([](const GramValue &v) { return v.rejected; });
        column([](const GramValue &v) { return v.count; });
        return nb::make_tuple(static_cast<int>(stop), copied(facts, 7, found), copied(path_.features),
                              copied(path_.rows));
    }

  private:
    static GramProblem checked(const Rows<double> &gram, const Rows<double> &cross, const Vector<double> &labels,
                               const Rows<double> &sizes, const Vector<double> &label_sizes,
                               const Vector<double> &group, const Vector<double> &l1, bool positive, double rounding,
                               double gauge_error, index_t room, double rows, int threads) {
        GramProblem p;
        p.matrices = gram.shape(0);
        p.features = cross.shape(1);
        p.tasks = cross.shape(0);
        require(p.features > 0 && p.tasks > 0, "there must be a feature and a task");
        require(index_t(gram.shape(1)) == panel_cells(p.features), "gram must hold the panels of square matrices");
        require(p.matrices == 1 || p.matrices == p.tasks, "one Gram matrix, or one a task");
        require(shaped(sizes, p.matrices, p.features), "sizes must be matrices x features");
        require(length(labels) == p.tasks && length(label_sizes) == p.tasks, "one number a task");
        require(length(group) == p.features && length(l1) == p.features, "one weight a feature");
        p.gram = gram.data();
        p.cross = cross.data();
        p.labels = labels.data();
        p.sizes = sizes.data();
        p.label_sizes = label_sizes.data();
        p.group = group.data();
        p.l1 = l1.data();
        p.positive = positive;
        p.rounding = rounding;
        p.gauge_error = gauge_error;
        p.room = room;
        p.rows = rows;
        p.threads = threads;
        return p;
    }

    Rows<double> gram_;
    Rows<double> cross_, sizes_;
    Vector<double> labels_, label_sizes_, group_, l1_;
    GramPath path_;
};

void py_add_grams(Columns<double> x, Indices offsets, int threads, OutRows<double> gram) {
    const index_t rows = x.shape(0), features = x.shape(1), matrices = gram.shape(0);
    require(index_t(gram.shape(1)) == panel_cells(features), "gram must hold the panels of square matrices");
    require(matrices == 1 || matrices == check_offsets(offsets, rows), "one Gram matrix, or one a task");
    nb::gil_scoped_release release;
    add_grams(x.data(), rows, offsets.data(), matrices, features, threads, gram.data());
}

void py_subtract_outer(Cube<double> first, Cube<double> second, int threads, OutRows<double> gram) {
    const index_t matrices = first.shape(0), count = first.shape(1), features = first.shape(2);
    require(shaped(second, matrices, count, features), "both factors must have the same shape");
    require(shaped(gram, matrices, panel_cells(features)), "gram must hold the panels of square matrices");
    nb::gil_scoped_release release;
    subtract_outer(first.data(), second.data(), matrices, count, features, threads, gram.data());
}

}  // namespace

void bind_gram_path(nb::module_ &m) {
    nb::class_<PyGramPath>(m, "GramPath")
        .def(nb::init<Rows<double>, Rows<double>, Vector<double>, Rows<double>, Vector<double>, Vector<double>,
                      Vector<double>, bool, double, double, index_t, double, int>(),
             array("gram"), array("cross"), array("labels"), array("sizes"), array("label_sizes"), array("group"),
             array("l1"), "positive"_a, "rounding"_a, "gauge_error"_a, "room"_a, "rows"_a, "threads"_a)
        .def("advance", &PyGramPath::advance, array("lams"), array("ridges"), array("goals"), "max_epochs"_a, "budget"_a);
    m.def("panel_cells", &panel_cells, "features"_a);
    m.def("subtract_outer", &py_subtract_outer, array("first"), array("second"), "threads"_a, array("gram"));
    m.def("add_grams", &py_add_grams, array("x"), array("offsets"), "threads"_a, array("gram"));
}

}  // namespace tasksieve
