#include "algebra.hpp"
#include "arrays.hpp"

namespace tasksieve {

namespace {

// Packed columns, some of which are chosen, and how their rows are cut into tasks.
struct Chosen {
    index_t rows, tasks, count, samples;

    Chosen(const Columns<double> &x, const Indices &offsets, bool shared, const Indices &columns)
        : rows(x.shape(0)), tasks(shared ? tasks_of(offsets) : check_offsets(offsets, rows)), count(length(columns)),
          samples(shared ? rows * tasks : rows) {
        check_indices(columns, x.shape(1));
    }
};

// Entries of all the factors: one a task.
index_t factor_cells(const Indices &offsets) {
    index_t cells = 0;
    for (size_t t = 1; t < offsets.size(); ++t) {
        const index_t n = offsets.data()[t] - offsets.data()[t - 1];
        cells += n * n;
    }
    return cells;
}

bool py_factor(Columns<double> x, Indices offsets, bool shared, Indices columns, Vector<double> a, Vector<double> y,
               int threads, OutVector<double> factors, OutVector<double> r) {
    const Chosen is(x, offsets, shared, columns);
    require(length(a) == is.count, "one weight a column");
    require(length(y) == is.samples && length(r) == is.samples, "y has the wrong size");
    require(length(factors) == (shared ? is.rows * is.rows : factor_cells(offsets)), "factors has the wrong size");
    nb::gil_scoped_release release;
    if (shared)
        return factor_shared(x.data(), is.rows, columns.data(), a.data(), is.count, y.data(), is.tasks, threads,
                             factors.data(), r.data());
    return factor_tasks(x.data(), is.rows, offsets.data(), is.tasks, columns.data(), a.data(), is.count, y.data(),
                        threads, factors.data(), r.data());
}

void py_whiten(Columns<double> x, Indices offsets, bool shared, Indices columns, Rows<double> u,
               Vector<double> factors, int threads, OutColumns<float> z) {
    const Chosen is(x, offsets, shared, columns);
    require(shaped(u, is.count, is.tasks), "u must be count x tasks");
    require(shaped(z, is.rows, is.count), "z has the wrong shape");
    require(length(factors) == (shared ? is.rows * is.rows : factor_cells(offsets)), "factors has the wrong size");
    nb::gil_scoped_release release;
    if (shared)
        whiten_shared(x.data(), is.rows, columns.data(), is.count, factors.data(), threads, z.data());
    else
        whiten_tasks(x.data(), is.rows, offsets.data(), is.tasks, columns.data(), u.data(), is.count, factors.data(),
                     threads, z.data());
}

// For kernels that keep something for each task also where all tasks share the matrix.
void check_unrolled(const Indices &offsets, index_t rows, bool shared) {
    for (size_t t = 0; shared && t < offsets.size(); ++t)
        require(offsets.data()[t] == index_t(t) * rows, "offsets of a shared matrix must be multiples of its rows");
}

bool py_factor_shifted(Columns<double> x, Indices offsets, bool shared, Indices columns, Vector<double> a,
                       Vector<double> diagonal, Vector<double> y, int threads, OutVector<double> factors,
                       OutVector<double> r) {
    const Chosen is(x, offsets, shared, columns);
    check_unrolled(offsets, is.rows, shared);
    require(length(a) == is.count, "one weight a column");
    require(length(diagonal) == is.tasks, "one diagonal a task");
    require(length(y) == is.samples && length(r) == is.samples, "y has the wrong size");
    require(length(factors) == factor_cells(offsets), "factors has the wrong size");
    nb::gil_scoped_release release;
    if (shared)
        return factor_shared_shifted(x.data(), is.rows, columns.data(), a.data(), is.count, diagonal.data(), y.data(),
                                     is.tasks, threads, factors.data(), r.data());
    return factor_tasks(x.data(), is.rows, offsets.data(), is.tasks, columns.data(), a.data(), is.count, y.data(),
                        threads, factors.data(), r.data(), diagonal.data());
}

template <class Real>
void py_whiten_each(Columns<double> x, Indices offsets, bool shared, Indices columns, Rows<double> u,
                    Vector<double> factors, int threads, OutColumns<Real> z) {
    const Chosen is(x, offsets, shared, columns);
    check_unrolled(offsets, is.rows, shared);
    require(shaped(u, is.count, is.tasks), "u must be count x tasks");
    require(shaped(z, is.samples, is.count), "z has the wrong shape");
    require(length(factors) == factor_cells(offsets), "factors has the wrong size");
    nb::gil_scoped_release release;
    whiten_tasks(x.data(), is.rows, offsets.data(), is.tasks, columns.data(), u.data(), is.count, factors.data(),
                 threads, z.data(), shared);
}

void py_normal_matrix(Columns<float> z, Maybe<Rows<float>> u, int threads, OutRows<float> m) {
    const index_t rows = z.shape(0), count = z.shape(1);
    require(shaped(m, count, count), "m has the wrong shape");
    require(!u || index_t(u->shape(0)) == count, "u must have one row a column of z");
    nb::gil_scoped_release release;
    normal_matrix(z.data(), rows, count, data_or_null(u), u ? u->shape(1) : 0, threads, m.data());
}

void py_normal_product(Columns<float> z, Maybe<Rows<float>> u, Vector<float> v, int threads, OutVector<float> out) {
    const index_t rows = z.shape(0), count = z.shape(1);
    require(length(v) == count && length(out) == count, "v and out: one entry a column of z");
    require(!u || index_t(u->shape(0)) == count, "u must have one row a column of z");
    nb::gil_scoped_release release;
    normal_product(z.data(), rows, count, data_or_null(u), u ? u->shape(1) : 0, v.data(), threads, out.data());
}

void py_combine(Columns<double> x, Indices offsets, bool shared, Indices columns, Rows<double> w, int threads,
                OutVector<double> out) {
    const Chosen is(x, offsets, shared, columns);
    require(shaped(w, is.count, is.tasks), "w must be count x tasks");
    require(length(out) == is.samples, "out has the wrong size");
    nb::gil_scoped_release release;
    combine(x.data(), is.rows, offsets.data(), is.tasks, shared, columns.data(), is.count, w.data(), threads,
            out.data());
}

void py_reweight(Columns<double> x, Indices offsets, bool shared, Indices columns, Vector<double> w,
                 Rows<double> basis, int threads, OutColumns<double> out, OutRows<double> h) {
    const Chosen is(x, offsets, shared, columns);
    check_unrolled(offsets, is.rows, shared);
    require(length(w) == is.samples, "w has the wrong size");
    require(basis.shape(0) == 0 || index_t(basis.shape(1)) == is.samples, "basis has the wrong shape");
    require(shaped(out, is.samples, is.count), "out has the wrong shape");
    require(shaped(h, is.count, is.tasks), "h has the wrong shape");
    nb::gil_scoped_release release;
    reweight(x.data(), is.rows, offsets.data(), is.tasks, shared, columns.data(), is.count, w.data(), basis.data(),
             basis.shape(0), threads, out.data(), h.data());
}

}  // namespace

void bind_algebra(nb::module_ &m) {
    m.def("factor", &py_factor, array("x"), array("offsets"), "shared"_a, array("columns"), array("a"), array("y"),
          "threads"_a, array("factors"), array("r"));
    m.def("whiten", &py_whiten, array("x"), array("offsets"), "shared"_a, array("columns"), array("u"),
          array("factors"), "threads"_a, array("z"));
    m.def("factor_shifted", &py_factor_shifted, array("x"), array("offsets"), "shared"_a, array("columns"),
          array("a"), array("diagonal"), array("y"), "threads"_a, array("factors"), array("r"));
    m.def("whiten_each", &py_whiten_each<float>, array("x"), array("offsets"), "shared"_a, array("columns"),
          array("u"), array("factors"), "threads"_a, array("z"));
    m.def("whiten_each", &py_whiten_each<double>, array("x"), array("offsets"), "shared"_a, array("columns"),
          array("u"), array("factors"), "threads"_a, array("z"));
    m.def("normal_matrix", &py_normal_matrix, array("z"), maybe("u"), "threads"_a, array("m"));
    m.def("normal_product", &py_normal_product, array("z"), maybe("u"), array("v"), "threads"_a, array("out"));
    m.def("reweight", &py_reweight, array("x"), array("offsets"), "shared"_a, array("columns"), array("w"),
          array("basis"), "threads"_a, array("out"), array("h"));
    m.def("combine", &py_combine, array("x"), array("offsets"), "shared"_a, array("columns"), array("w"), "threads"_a,
          array("out"));
}

}  // namespace tasksieve
