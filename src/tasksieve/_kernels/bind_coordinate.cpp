#include "arrays.hpp"
#include "coordinate.hpp"

namespace tasksieve {

namespace {

void set_columns(RowProblem &p, const double *x) { p.x = x; }
void set_columns(RowProblem &p, const float *x) { p.narrow = x; }

template <class T>
std::tuple<index_t, double, double> py_coordinate_descent(
    Columns<T> x, Indices offsets, bool shared, Indices columns, Rows<double> h, Vector<double> group,
    Vector<double> l1, double ridge, bool positive, OutRows<double> w, OutVector<double> state, index_t max_epochs,
    double tol, Maybe<Cube<double>> gram, Maybe<Rows<double>> y_products, double y_squared,
    int kind, Maybe<Indices> starts, Maybe<Rows<double>> coupling, Maybe<Rows<double>> curvatures,
    Maybe<Cube<double>> rotations, int threads, Maybe<Indices> classes, Maybe<Vector<double>> shares,
    Maybe<Vector<double>> levels, Maybe<Vector<double>> inverse) {
    RowProblem p;
    set_columns(p, x.data());
    p.rows = x.shape(0);
    p.offsets = offsets.data();
    p.tasks = shared ? tasks_of(offsets) : check_offsets(offsets, p.rows);
    p.shared = shared;
    p.columns = columns.data();
    p.count = length(columns);
    p.h = h.data();
    require(kind >= 0 && kind < ROW_KINDS, "unknown kind of rows");
    p.kind = kind;
    p.group = group.data();
    p.l1 = l1.data();
    p.ridge = ridge;
    p.positive = positive;
    const index_t cells = p.count * p.tasks;
    require(length(h) == cells && length(w) == cells, "h and w must be count x tasks");
    require(!coupling || !starts, "blocks of rows know no graph");
    require(!coupling || shaped(*coupling, p.tasks, p.tasks), "coupling must be tasks x tasks");
    require(!rotations || (coupling && shaped(*rotations, p.count, p.tasks, p.tasks) && curvatures &&
                           shaped(*curvatures, p.count, p.tasks)),
            "rotations must be count x tasks x tasks, curvatures count x tasks");
    p.coupling = data_or_null(coupling);
    p.curvatures = data_or_null(curvatures);
    p.rotations = data_or_null(rotations);
    index_t blocks = p.count;
    if (starts) {
        blocks = length(*starts) - 1;
        require(blocks >= 0 && starts->data()[0] == 0 && starts->data()[blocks] == p.count, "blocks must hold all columns");
        for (index_t k = 0; k < blocks; ++k)
            require(starts->data()[k] < starts->data()[k + 1], "blocks must not be empty");
        require(kind == ROW_SUM || kind == ROW_STACK, "this kind of rows has no blocks");
        p.starts = starts->data();
        p.n_blocks = blocks;
    }
    require(length(group) == blocks && length(l1) == blocks, "one weight a column, or a block of them");
    if (gram) {
        require(y_products && index_t(y_products->shape(0)) == p.tasks, "y_products must be tasks x columns");
        p.width = y_products->shape(1);
        p.stride = gram->shape(2);
        require(shaped(*gram, shared ? 1 : p.tasks, p.stride, p.stride) && p.stride >= p.width,
                "gram has the wrong shape");
        require(length(state) == p.tasks * p.width, "state must be tasks x columns");
        check_indices(columns, p.width);
        p.gram = gram->data();
        p.y_products = y_products->data();
        p.y_squared = y_squared;
    } else {
        check_indices(columns, x.shape(1));
        require(length(state) == (shared ? p.rows * p.tasks : p.rows), "state must be the residual");
    }
    if (classes) {
        require(!shared && !gram && !coupling, "classes need columns of their own, and know no graph");
        p.n_classified = length(*classes) - 1;
        const index_t *cuts = classes->data();
        require(p.n_classified >= 0 && cuts[0] == 0 && cuts[p.n_classified] == p.tasks, "classes must hold all tasks");
        index_t entries = 0;
        for (index_t g = 0; g < p.n_classified; ++g) {
            require(cuts[g] < cuts[g + 1], "a task must have classes");
            entries += (cuts[g + 1] - cuts[g]) * (cuts[g + 1] - cuts[g]);
            for (index_t t = cuts[g]; t < cuts[g + 1]; ++t)
                require(p.offsets[t + 1] - p.offsets[t] == p.offsets[cuts[g] + 1] - p.offsets[cuts[g]],
                        "classes of a task must have the same rows");
        }
        require(shares && levels && inverse && length(*shares) == p.rows && length(*levels) == p.rows &&
                    length(*inverse) == entries,
                "shares and levels must be as long as the residual, inverse a matrix a task");
        p.classes = cuts;
        p.shares = shares->data();
        p.levels = levels->data();
        p.inverse = inverse->data();
    }
    nb::gil_scoped_release release;
    const RowReport report = coordinate_descent(p, w.data(), state.data(), max_epochs, tol, threads);
    return {report.epochs, report.gap, report.objective};
}

void py_row_gauges(Rows<double> m, Maybe<Rows<double>> errors, Vector<double> group, Vector<double> l1, bool positive,
                   OutVector<double> out) {
    const index_t rows = m.shape(0), tasks = m.shape(1);
    require(length(group) == rows && length(l1) == rows && length(out) == rows, "one entry a row");
    require(!errors || shaped(*errors, rows, tasks), "one error a product");
    row_gauges(m.data(), data_or_null(errors), rows, tasks, group.data(), l1.data(), positive, out.data());
}

void py_row_norms(Rows<double> rows, OutVector<double> out) {
    require(length(out) == index_t(rows.shape(0)), "one entry a row");
    row_norms(rows.data(), rows.shape(0), rows.shape(1), out.data());
}

void py_pick_rows(Indices known, Rows<double> rows, Indices features, OutRows<double> out) {
    const index_t tasks = rows.shape(1);
    require(shaped(rows, length(known), tasks) && shaped(out, length(features), tasks), "one row a feature");
    pick_rows(known.data(), length(known), rows.data(), features.data(), length(features), tasks, out.data());
}

void py_solve_rows(Rows<double> c, Rows<double> h, Vector<double> group, Vector<double> l1, double ridge,
                   bool positive, OutRows<double> out, int kind) {
    require(kind >= 0 && kind < ROW_KINDS, "unknown kind of rows");
    const index_t rows = c.shape(0), tasks = c.shape(1);
    require(length(group) == rows && length(l1) == rows && shaped(h, rows, tasks) && shaped(out, rows, tasks),
            "one entry a row");
    std::vector<double> row(tasks);
    for (index_t j = 0; j < rows; ++j) {
        std::copy_n(c.data() + j * tasks, tasks, row.begin());
        solve_row(row.data(), h.data() + j * tasks, tasks, group.data()[j], l1.data()[j], ridge, positive,
                  out.data() + j * tasks, kind);
    }
}

}  // namespace

void bind_coordinate(nb::module_ &m) {
    const auto descent_of = [&](auto function) {
        m.def("coordinate_descent", function, array("x"), array("offsets"), "shared"_a, array("columns"), array("h"),
              array("group"), array("l1"), "ridge"_a, "positive"_a, array("w"), array("state"), "max_epochs"_a, "tol"_a,
              maybe("gram"), maybe("y_products"), "y_squared"_a, "kind"_a = int(ROW_SUM),
              maybe("starts") = nb::none(), maybe("coupling") = nb::none(), maybe("curvatures") = nb::none(),
              maybe("rotations") = nb::none(), "threads"_a = 1, maybe("classes") = nb::none(),
              maybe("shares") = nb::none(), maybe("levels") = nb::none(), maybe("inverse") = nb::none());
    };
    descent_of(&py_coordinate_descent<double>);
    descent_of(&py_coordinate_descent<float>);
    m.def("row_gauges", &py_row_gauges, array("m"), maybe("errors"), array("group"), array("l1"), "positive"_a,
          array("out"));
    m.def("row_norms", &py_row_norms, array("rows"), array("out"));
    m.def("pick_rows", &py_pick_rows, array("known"), array("rows"), array("features"), array("out"));
    m.def("solve_rows", &py_solve_rows, array("c"), array("h"), array("group"), array("l1"), "ridge"_a, "positive"_a,
          array("out"), "kind"_a = int(ROW_SUM));
}

}  // namespace tasksieve
