#include "arrays.hpp"
#include "smooth_path.hpp"

namespace tasksieve {

namespace {

// The path and the arrays that it reads.
class PySmoothPath {
  public:
    PySmoothPath(Columns<double> x, Indices offsets, bool shared, Vector<double> root, Vector<double> labels,
                 Maybe<Vector<double>> offset, bool intercept, int loss, Vector<double> group, Vector<double> l1,
                 bool positive, index_t room)
        : x_(x), offsets_(offsets), root_(root), labels_(labels), group_(group), l1_(l1), offset_(offset),
          tasks_(tasks_of(offsets)),
          path_(checked(x, offsets, shared, root, labels, offset, intercept, loss, group, l1, positive, room)) {}

    nb::tuple advance(Vector<double> lams, Vector<double> goals, index_t max_epochs, double budget) {
        const index_t count = length(lams);
        require(length(goals) == count, "one goal a strength");
        for (index_t v = 0; v < count; ++v)
            require(lams.data()[v] > 0.0 && std::isfinite(lams.data()[v]), "strengths must be positive");
        SmoothStop stop;
        {
            nb::gil_scoped_release release;
            stop = path_.advance(lams.data(), goals.data(), count, max_epochs, budget);
        }
        const std::size_t found = path_.values.size();
        std::vector<double> facts;
        facts.reserve(4 * found);
        const auto column = [&](auto of) {
            for (const SmoothValue &v : path_.values) facts.push_back(static_cast<double>(of(v)));
        };
        column([](const SmoothValue &v) { return v.gap; });
        column([](const SmoothValue &v) { return v.seconds; });
        column([](const SmoothValue &v) { return v.epochs; });
        column([](const SmoothValue &v) { return v.count; });
        const std::size_t tasks = static_cast<std::size_t>(tasks_);
        return nb::make_tuple(static_cast<int>(stop), copied(facts, 4, found), copied(path_.features),
                              copied(path_.rows, path_.features.size(), tasks), copied(path_.levels, found, tasks));
    }

  private:
    static SmoothProblem checked(const Columns<double> &x, const Indices &offsets, bool shared,
                                 const Vector<double> &root, const Vector<double> &labels,
                                 const Maybe<Vector<double>> &offset, bool intercept, int loss,
                                 const Vector<double> &group, const Vector<double> &l1, bool positive, index_t room) {
        SmoothProblem p;
        p.rows = x.shape(0);
        p.features = x.shape(1);
        p.tasks = check_offsets(offsets, length(root));
        require(p.features > 0 && p.tasks > 0, "there must be a feature and a task");
        require(length(root) == (shared ? p.rows * p.tasks : p.rows), "one weight a sample");
        for (index_t t = 0; shared && t < p.tasks; ++t)
            require(offsets.data()[t + 1] - offsets.data()[t] == p.rows, "tasks that share a matrix have all of its rows");
        require(length(labels) == length(root) && (!offset || length(*offset) == length(root)), "one label a sample");
        require(length(group) == p.features && length(l1) == p.features, "one weight a feature");
        require(loss == 0 || loss == 1, "loss: 0 or 1");
        p.x = x.data();
        p.offsets = offsets.data();
        p.shared = shared;
        p.root = root.data();
        p.labels = labels.data();
        p.offset = data_or_null(offset);
        p.intercept = intercept;
        p.loss = static_cast<SmoothLoss>(loss);
        p.group = group.data();
        p.l1 = l1.data();
        p.positive = positive;
        p.room = room;
        return p;
    }

    Columns<double> x_;
    Indices offsets_;
    Vector<double> root_, labels_, group_, l1_;
    Maybe<Vector<double>> offset_;
    index_t tasks_;
    SmoothPath path_;
};

}  // namespace

void bind_smooth_path(nb::module_ &m) {
    nb::class_<PySmoothPath>(m, "SmoothPath")
        .def(nb::init<Columns<double>, Indices, bool, Vector<double>, Vector<double>, Maybe<Vector<double>>, bool, int,
                      Vector<double>, Vector<double>, bool, index_t>(),
             array("x"), array("offsets"), "shared"_a, array("root"), array("labels"), maybe("offset"), "intercept"_a,
             "loss"_a, array("group"), array("l1"), "positive"_a, "room"_a)
        .def("advance", &PySmoothPath::advance, array("lams"), array("goals"), "max_epochs"_a, "budget"_a);
}

}  // namespace tasksieve
