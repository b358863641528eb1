// Bindings: shapes are checked here once, kernels see raw pointers and run without the interpreter lock.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include "anchors.hpp"
#include "coordinate.hpp"
#include "algebra.hpp"
#include "gram.hpp"
#include "panel.hpp"
#include "passes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tasksieve {

void bind_online(nb::module_ &m);
void bind_graph(nb::module_ &m);  // graph_bindings.cpp
void bind_sorted(nb::module_ &m);  // sorted_bindings.cpp

Blas blas;

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Columns = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutRows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutColumns = nb::ndarray<double, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using OutCube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using FloatVector = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatRows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using FloatColumns = nb::ndarray<float, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Indices = std::optional<Vector<index_t>>;

void require(bool condition, const char *message) {
    if (!condition) throw std::invalid_argument(message);
}

const index_t *data_or_null(const Indices &indices) { return indices ? indices->data() : nullptr; }

void check_columns(const index_t *columns, index_t count, index_t available) {
    for (index_t k = 0; k < count; ++k)
        require(columns[k] >= 0 && columns[k] < available, "column index out of range");
}

void check_offsets(const Vector<index_t> &offsets, index_t rows) {
    require(offsets.size() >= 1 && offsets.data()[0] == 0, "offsets must start at 0");
    for (size_t t = 1; t < offsets.size(); ++t)
        require(offsets.data()[t] >= offsets.data()[t - 1], "offsets must not decrease");
    require(offsets.data()[offsets.size() - 1] == rows, "offsets must end at the number of rows");
}

template <class T>
void py_segment_products(Columns<T> x, Indices columns, Vector<double> r, Vector<index_t> offsets, bool squares,
                         int threads, OutRows out) {
    const index_t rows = x.shape(0), tasks = offsets.size() - 1, count = columns ? columns->size() : x.shape(1);
    check_offsets(offsets, rows);
    require(index_t(r.size()) == rows, "r must have one entry a row");
    require(index_t(out.shape(0)) == count && index_t(out.shape(1)) == tasks, "out has the wrong shape");
    if (columns) check_columns(columns->data(), count, x.shape(1));
    nb::gil_scoped_release release;
    segment_products(x.data(), rows, data_or_null(columns), count, r.data(), offsets.data(), tasks, squares, threads,
                     out.data());
}

template <class T>
void py_shared_products(Columns<T> x, Indices columns, Columns<double> r, bool squares, int threads, OutRows out) {
    const index_t rows = x.shape(0), tasks = r.shape(1), count = columns ? columns->size() : x.shape(1);
    require(index_t(r.shape(0)) == rows, "r must have one row a row of x");
    require(index_t(out.shape(0)) == count && index_t(out.shape(1)) == tasks, "out has the wrong shape");
    if (columns) check_columns(columns->data(), count, x.shape(1));
    nb::gil_scoped_release release;
    shared_products(x.data(), rows, data_or_null(columns), count, r.data(), tasks, squares, threads, out.data());
}

template <class T, class I>
void py_sparse_products(Vector<T> data, Vector<I> indices, Vector<I> indptr, Indices columns, Rows<double> r,
                        std::optional<Vector<index_t>> task_of, index_t tasks, bool squares, int threads,
                        OutRows out) {
    const index_t features = indptr.size() - 1, count = columns ? columns->size() : features;
    require(data.size() == indices.size() && index_t(indptr.data()[features]) == index_t(data.size()),
            "inconsistent sparse columns");
    require(task_of ? (r.shape(1) == 1 && task_of->size() == r.shape(0)) : index_t(r.shape(1)) == tasks,
            "r has the wrong shape");
    require(index_t(out.shape(0)) == count && index_t(out.shape(1)) == tasks, "out has the wrong shape");
    if (columns) check_columns(columns->data(), count, features);
    nb::gil_scoped_release release;
    sparse_products(data.data(), indices.data(), indptr.data(), data_or_null(columns), count, r.data(),
                    task_of ? task_of->data() : nullptr, tasks, squares, threads, out.data());
}

template <class T>
void py_row_products(Rows<T> x, Vector<double> r, Vector<index_t> task_of, bool squares, int threads, OutRows out) {
    const index_t rows = x.shape(0), features = x.shape(1);
    require(index_t(r.size()) == rows && index_t(task_of.size()) == rows, "one entry of r and task_of a row");
    require(index_t(out.shape(1)) == features, "out has the wrong shape");
    check_columns(task_of.data(), rows, out.shape(0));
    nb::gil_scoped_release release;
    row_products(x.data(), rows, features, r.data(), task_of.data(), squares, threads, out.data());
}

template <class T>
void py_first_products(Columns<T> x, Vector<double> weights, Rows<double> r, Vector<index_t> offsets, int threads,
                       OutRows squares, std::vector<OutRows> out) {
    const index_t rows = x.shape(0), count = x.shape(1), tasks = offsets.size() - 1, vectors = r.shape(0);
    check_offsets(offsets, rows);
    require(vectors >= 1 && index_t(r.shape(1)) == rows && index_t(weights.size()) == rows,
            "weights and each vector must have one entry a row");
    require(index_t(squares.shape(0)) == count && index_t(squares.shape(1)) == tasks, "squares has the wrong shape");
    require(index_t(out.size()) == vectors, "one array in out a vector");
    std::vector<double *> targets;
    for (const auto &array : out) {
        require(index_t(array.shape(0)) == count && index_t(array.shape(1)) == tasks, "out has the wrong shape");
        targets.push_back(array.data());
    }
    nb::gil_scoped_release release;
    first_products(x.data(), rows, count, weights.data(), r.data(), vectors, offsets.data(), tasks, threads,
                   squares.data(), targets.data());
}

void py_moment_bounds(Rows<double> moments, Rows<double> first, Vector<double> longest, Vector<double> group,
                      double alpha, double beta, double first_unit, double radius, double rounding,
                      OutVector upper) {
    const index_t count = upper.size();
    require(index_t(moments.shape(0)) == count && moments.shape(1) == 3, "moments: three a feature");
    require(index_t(first.shape(0)) == count && first.shape(1) == 3, "first: three a feature");
    require(index_t(longest.size()) == count && index_t(group.size()) == count, "one entry a feature");
    nb::gil_scoped_release release;
    moment_bounds(moments.data(), first.data(), longest.data(), group.data(), count, alpha, beta, first_unit, radius,
                  rounding, upper.data());
}

double py_largest_magnitude(Rows<double> values, int threads) {
    nb::gil_scoped_release release;
    return largest_magnitude(values.data(), values.size(), threads);
}

void py_store_single(Rows<double> values, double factor, float least, int threads, FloatRows out) {
    require(values.shape(0) == out.shape(0) && values.shape(1) == out.shape(1), "out has the wrong shape");
    nb::gil_scoped_release release;
    store_single(values.data(), values.size(), factor, least, threads, out.data());
}

void py_anchored_ratios(std::vector<Rows<float>> anchors, Rows<double> coef, Rows<float> norms,
                        Vector<double> remainder, double shared_remainder, double radius, Vector<double> group,
                        std::optional<Vector<double>> l1, bool positive, int threads, OutVector estimate,
                        OutVector upper, Indices chosen, std::optional<OutRows> moments) {
    const index_t features = norms.shape(0), tasks = coef.shape(1);
    std::vector<const float *> pointers;
    for (const auto &anchor : anchors) {
        require(index_t(anchor.shape(0)) == features && index_t(anchor.shape(1)) == tasks, "anchor shape");
        pointers.push_back(anchor.data());
    }
    require(coef.shape(0) == anchors.size(), "one row of coef an anchor");
    require(index_t(norms.shape(1)) == tasks || norms.shape(1) == 1, "norms shape");
    const bool one_norm = norms.shape(1) == 1;
    require(one_norm || index_t(remainder.size()) == tasks, "one remainder a task");
    require(index_t(group.size()) == features && (!l1 || index_t(l1->size()) == features), "one entry a feature");
    const index_t count = chosen ? chosen->size() : features;
    if (chosen) check_columns(chosen->data(), count, features);
    require(index_t(estimate.size()) == count && index_t(upper.size()) == count, "one entry a feature");
    require(!moments || (index_t(moments->shape(0)) == count && moments->shape(1) == 3), "moments: three a feature");
    nb::gil_scoped_release release;
    anchored_ratios(pointers.data(), pointers.size(), coef.data(), norms.data(), one_norm ? 0 : tasks,
                    remainder.data(), shared_remainder, radius, group.data(), l1 ? l1->data() : nullptr, positive,
                    data_or_null(chosen), count, tasks, threads, estimate.data(), upper.data(),
                    moments ? moments->data() : nullptr);
}

nb::tuple py_coordinate_descent(Columns<double> x, Vector<index_t> offsets, bool shared, Vector<index_t> columns,
                                Rows<double> h, Vector<double> group, Vector<double> l1, double ridge, bool positive,
                                OutRows w, OutVector state, index_t max_epochs, double tol,
                                std::optional<Vector<double>> gram, std::optional<Vector<double>> y_products,
                                double y_squared) {
    RowProblem p;
    p.x = x.data();
    p.rows = x.shape(0);
    p.offsets = offsets.data();
    p.tasks = offsets.size() - 1;
    p.shared = shared;
    p.columns = columns.data();
    p.count = columns.size();
    p.h = h.data();
    p.group = group.data();
    p.l1 = l1.data();
    p.ridge = ridge;
    p.positive = positive;
    const index_t cells = p.count * p.tasks;
    require(index_t(h.size()) == cells && index_t(w.size()) == cells, "h and w must be count x tasks");
    require(index_t(group.size()) == p.count && index_t(l1.size()) == p.count, "one weight a column");
    if (!shared) check_offsets(offsets, p.rows);
    if (gram) {
        require(y_products.has_value() && index_t(y_products->size()) == cells, "y_products must be tasks x count");
        require(index_t(gram->size()) == p.count * p.count * (shared ? 1 : p.tasks), "gram has the wrong size");
        require(index_t(state.size()) == cells, "state must be tasks x count");
        p.gram = gram->data();
        p.y_products = y_products->data();
        p.y_squared = y_squared;
    } else {
        check_columns(p.columns, p.count, x.shape(1));
        require(index_t(state.size()) == (shared ? p.rows * p.tasks : p.rows), "state must be the residual");
    }
    RowReport report;
    {
        nb::gil_scoped_release release;
        report = coordinate_descent(p, w.data(), state.data(), max_epochs, tol);
    }
    return nb::make_tuple(report.epochs, report.gap, report.objective);
}

void py_row_gauges(Rows<double> m, Vector<double> group, Vector<double> l1, bool positive, OutVector out) {
    require(group.size() == m.shape(0) && l1.size() == m.shape(0) && out.size() == m.shape(0), "one entry a row");
    for (size_t j = 0; j < m.shape(0); ++j)
        out.data()[j] = row_gauge(m.data() + j * m.shape(1), m.shape(1), group.data()[j], l1.data()[j], positive);
}

void py_solve_rows(Rows<double> c, Rows<double> h, Vector<double> group, Vector<double> l1, double ridge,
                   bool positive, OutRows out) {
    require(group.size() == c.shape(0) && l1.size() == c.shape(0) && out.shape(0) == c.shape(0) &&
                h.shape(0) == c.shape(0) && h.shape(1) == c.shape(1) && out.shape(1) == c.shape(1),
            "one entry a row");
    std::vector<double> row(c.shape(1));
    for (size_t j = 0; j < c.shape(0); ++j) {
        std::copy(c.data() + j * c.shape(1), c.data() + (j + 1) * c.shape(1), row.begin());
        solve_row(row.data(), h.data() + j * c.shape(1), c.shape(1), group.data()[j], l1.data()[j], ridge, positive,
                  out.data() + j * c.shape(1));
    }
}

// Entries of all the factors: one for the shared matrix, or one a task.
index_t factor_cells(const Vector<index_t> &offsets, index_t rows, bool shared) {
    if (shared) return rows * rows;
    index_t cells = 0;
    for (size_t t = 1; t < offsets.size(); ++t) {
        const index_t n = offsets.data()[t] - offsets.data()[t - 1];
        cells += n * n;
    }
    return cells;
}

bool py_factor(Columns<double> x, Vector<index_t> offsets, bool shared, Vector<index_t> columns, Vector<double> a,
               Vector<double> y, int threads, OutVector factors, OutVector r) {
    const index_t rows = x.shape(0), tasks = offsets.size() - 1, count = columns.size();
    require(index_t(a.size()) == count, "one weight a column");
    check_columns(columns.data(), count, x.shape(1));
    require(y.size() == r.size() && index_t(y.size()) == (shared ? rows * tasks : rows), "y has the wrong size");
    if (!shared) check_offsets(offsets, rows);
    require(index_t(factors.size()) == factor_cells(offsets, rows, shared), "factors has the wrong size");
    nb::gil_scoped_release release;
    if (shared)
        return factor_shared(x.data(), rows, columns.data(), a.data(), count, y.data(), tasks, threads,
                             factors.data(), r.data());
    return factor_tasks(x.data(), rows, offsets.data(), tasks, columns.data(), a.data(), count, y.data(), threads,
                        factors.data(), r.data());
}

void py_whiten(Columns<double> x, Vector<index_t> offsets, bool shared, Vector<index_t> columns, Rows<double> u,
               Vector<double> factors, int threads, FloatColumns z) {
    const index_t rows = x.shape(0), tasks = offsets.size() - 1, count = columns.size();
    check_columns(columns.data(), count, x.shape(1));
    require(index_t(u.shape(0)) == count && index_t(u.shape(1)) == tasks, "u must be count x tasks");
    require(index_t(z.shape(0)) == rows && index_t(z.shape(1)) == count, "z has the wrong shape");
    if (!shared) check_offsets(offsets, rows);
    require(index_t(factors.size()) == factor_cells(offsets, rows, shared), "factors has the wrong size");
    nb::gil_scoped_release release;
    if (shared)
        whiten_shared(x.data(), rows, columns.data(), count, factors.data(), threads, z.data());
    else
        whiten_tasks(x.data(), rows, offsets.data(), tasks, columns.data(), u.data(), count, factors.data(), threads,
                     z.data());
}

// The factors of `factor_shifted`: one a task, also where all tasks share the matrix.
index_t own_factor_cells(const Vector<index_t> &offsets) { return factor_cells(offsets, 0, false); }

void check_own_layout(const Vector<index_t> &offsets, index_t rows, bool shared) {
    if (!shared) return check_offsets(offsets, rows);
    for (size_t t = 0; t < offsets.size(); ++t)
        require(offsets.data()[t] == index_t(t) * rows, "offsets of a shared matrix must be multiples of its rows");
}

bool py_factor_shifted(Columns<double> x, Vector<index_t> offsets, bool shared, Vector<index_t> columns,
                       Vector<double> a, Vector<double> diagonal, Vector<double> y, int threads, OutVector factors,
                       OutVector r) {
    const index_t rows = x.shape(0), tasks = offsets.size() - 1, count = columns.size();
    require(index_t(a.size()) == count, "one weight a column");
    require(index_t(diagonal.size()) == tasks, "one diagonal a task");
    check_columns(columns.data(), count, x.shape(1));
    check_own_layout(offsets, rows, shared);
    require(y.size() == r.size() && index_t(y.size()) == (shared ? rows * tasks : rows), "y has the wrong size");
    require(index_t(factors.size()) == own_factor_cells(offsets), "factors has the wrong size");
    nb::gil_scoped_release release;
    if (shared)
        return factor_shared_shifted(x.data(), rows, columns.data(), a.data(), count, diagonal.data(), y.data(), tasks,
                                     threads, factors.data(), r.data());
    return factor_tasks(x.data(), rows, offsets.data(), tasks, columns.data(), a.data(), count, y.data(), threads,
                        factors.data(), r.data(), diagonal.data());
}

template <class Whitened>
void py_whiten_each(Columns<double> x, Vector<index_t> offsets, bool shared, Vector<index_t> columns, Rows<double> u,
                    Vector<double> factors, int threads, Whitened z) {
    const index_t rows = x.shape(0), tasks = offsets.size() - 1, count = columns.size();
    check_columns(columns.data(), count, x.shape(1));
    check_own_layout(offsets, rows, shared);
    require(index_t(u.shape(0)) == count && index_t(u.shape(1)) == tasks, "u must be count x tasks");
    require(index_t(z.shape(0)) == (shared ? rows * tasks : rows) && index_t(z.shape(1)) == count,
            "z has the wrong shape");
    require(index_t(factors.size()) == own_factor_cells(offsets), "factors has the wrong size");
    nb::gil_scoped_release release;
    whiten_tasks(x.data(), rows, offsets.data(), tasks, columns.data(), u.data(), count, factors.data(), threads,
                 z.data(), shared);
}

void py_normal_matrix(Columns<float> z, std::optional<Rows<float>> u, int threads, FloatRows m) {
    const index_t rows = z.shape(0), count = z.shape(1);
    require(index_t(m.shape(0)) == count && index_t(m.shape(1)) == count, "m has the wrong shape");
    require(!u || index_t(u->shape(0)) == count, "u must have one row a column of z");
    nb::gil_scoped_release release;
    normal_matrix(z.data(), rows, count, u ? u->data() : nullptr, u ? u->shape(1) : 0, threads, m.data());
}

void py_normal_product(Columns<float> z, std::optional<Rows<float>> u, Vector<float> v, int threads,
                       FloatVector out) {
    const index_t rows = z.shape(0), count = z.shape(1);
    require(index_t(v.size()) == count && index_t(out.size()) == count, "v and out: one entry a column of z");
    require(!u || index_t(u->shape(0)) == count, "u must have one row a column of z");
    nb::gil_scoped_release release;
    normal_product(z.data(), rows, count, u ? u->data() : nullptr, u ? u->shape(1) : 0, v.data(), threads,
                   out.data());
}

void py_extend_grams(Columns<double> x, Vector<index_t> offsets, Vector<index_t> columns, index_t known, int threads,
                     OutCube gram) {
    const index_t rows = x.shape(0), total = columns.size(), matrices = gram.shape(0), capacity = gram.shape(1);
    check_columns(columns.data(), total, x.shape(1));
    require(known >= 0 && known <= total && total <= capacity, "gram is too small");
    require(index_t(gram.shape(2)) == capacity, "gram must hold square matrices");
    require(matrices == 1 || matrices == index_t(offsets.size()) - 1, "one Gram matrix, or one a task");
    if (matrices > 1) check_offsets(offsets, rows);
    nb::gil_scoped_release release;
    extend_grams(x.data(), rows, offsets.data(), matrices, columns.data(), known, total, capacity, threads,
                 gram.data());
}

void check_gram(const Cube &gram, const Vector<index_t> &slots, const Vector<double> &a, const Rows<double> &values) {
    check_columns(slots.data(), slots.size(), gram.shape(1));
    require(gram.shape(1) == gram.shape(2), "gram must hold square matrices");
    require(a.size() == slots.size() && values.shape(0) == slots.size(), "one weight and one row a slot");
    require(gram.shape(0) == 1 || gram.shape(0) == values.shape(1), "one Gram matrix, or one a task");
}

bool py_gram_factor(Cube gram, Vector<index_t> slots, Vector<double> a, Rows<double> products, int threads,
                    OutCube factors, OutRows w) {
    check_gram(gram, slots, a, products);
    require(w.shape(0) == products.shape(0) && w.shape(1) == products.shape(1), "w has the wrong shape");
    require(factors.shape(0) == gram.shape(0) && factors.shape(1) == slots.size() && factors.shape(2) == slots.size(),
            "factors has the wrong shape");
    nb::gil_scoped_release release;
    return gram_factor(gram.data(), gram.shape(0), gram.shape(1), slots.data(), a.data(), slots.size(),
                       products.data(), products.shape(1), threads, factors.data(), w.data());
}

bool py_gram_normal(Cube factors, Vector<double> a, Rows<double> u, int threads, FloatRows m) {
    const size_t count = a.size();
    require(factors.shape(1) == count && factors.shape(2) == count, "factors has the wrong shape");
    require(u.shape(0) == count && (factors.shape(0) == 1 || factors.shape(0) == u.shape(1)), "u has the wrong shape");
    require(m.shape(0) == count && m.shape(1) == count, "m has the wrong shape");
    nb::gil_scoped_release release;
    return gram_normal(factors.data(), factors.shape(0), a.data(), u.data(), count, u.shape(1), threads, m.data());
}

void py_combine(Columns<double> x, Vector<index_t> offsets, bool shared, Vector<index_t> columns, Rows<double> w,
                int threads, OutVector out) {
    const index_t rows = x.shape(0), tasks = offsets.size() - 1, count = columns.size();
    check_columns(columns.data(), count, x.shape(1));
    require(index_t(w.shape(0)) == count && index_t(w.shape(1)) == tasks, "w must be count x tasks");
    require(index_t(out.size()) == (shared ? rows * tasks : rows), "out has the wrong size");
    if (!shared) check_offsets(offsets, rows);
    nb::gil_scoped_release release;
    combine(x.data(), rows, offsets.data(), tasks, shared, columns.data(), count, w.data(), threads, out.data());
}

void py_reweight(Columns<double> x, Vector<index_t> offsets, bool shared, Vector<index_t> columns, Vector<double> w,
                 Rows<double> basis, int threads, OutColumns out, OutRows h) {
    const index_t rows = x.shape(0), tasks = offsets.size() - 1, count = columns.size(), samples = w.size();
    check_columns(columns.data(), count, x.shape(1));
    check_offsets(offsets, samples);
    require(shared ? rows * tasks == samples : rows == samples, "w has the wrong size");
    require(basis.shape(0) == 0 || index_t(basis.shape(1)) == samples, "basis has the wrong shape");
    require(index_t(out.shape(0)) == samples && index_t(out.shape(1)) == count, "out has the wrong shape");
    require(index_t(h.shape(0)) == count && index_t(h.shape(1)) == tasks, "h has the wrong shape");
    nb::gil_scoped_release release;
    reweight(x.data(), rows, offsets.data(), tasks, shared, columns.data(), count, w.data(), basis.data(),
             basis.shape(0), threads, out.data(), h.data());
}

template <class F>
void take_pointer(nb::dict table, const char *name, F &target) {
    nb::object capsule = table[name];
    void *pointer = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (!pointer) throw nb::python_error();
    target = reinterpret_cast<F>(pointer);
}

void py_use_blas(nb::dict blas_table, nb::dict lapack_table) {
    take_pointer(blas_table, "dgemm", blas.dgemm);
    take_pointer(blas_table, "sgemm", blas.sgemm);
    take_pointer(blas_table, "sgemv", blas.sgemv);
    take_pointer(blas_table, "ssyrk", blas.ssyrk);
    take_pointer(blas_table, "dtrsm", blas.dtrsm);
    take_pointer(lapack_table, "dpotrf", blas.dpotrf);
    take_pointer(lapack_table, "dpotrs", blas.dpotrs);
    take_pointer(lapack_table, "spotri", blas.spotri);
}

template <class T>
void bind_storage(nb::module_ &m) {
    m.def("segment_products", &py_segment_products<T>, "x"_a.noconvert(), "columns"_a.none().noconvert(),
          "r"_a.noconvert(), "offsets"_a.noconvert(), "squares"_a, "threads"_a, "out"_a.noconvert());
    m.def("shared_products", &py_shared_products<T>, "x"_a.noconvert(), "columns"_a.none().noconvert(),
          "r"_a.noconvert(), "squares"_a, "threads"_a, "out"_a.noconvert());
    m.def("sparse_products", &py_sparse_products<T, std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
          "indptr"_a.noconvert(), "columns"_a.none().noconvert(), "r"_a.noconvert(), "task_of"_a.none().noconvert(),
          "tasks"_a, "squares"_a, "threads"_a, "out"_a.noconvert());
    m.def("sparse_products", &py_sparse_products<T, std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
          "indptr"_a.noconvert(), "columns"_a.none().noconvert(), "r"_a.noconvert(), "task_of"_a.none().noconvert(),
          "tasks"_a, "squares"_a, "threads"_a, "out"_a.noconvert());
    m.def("first_products", &py_first_products<T>, "x"_a.noconvert(), "weights"_a.noconvert(), "r"_a.noconvert(),
          "offsets"_a.noconvert(), "threads"_a, "squares"_a.noconvert(), "out"_a.noconvert());
    m.def("row_products", &py_row_products<T>, "x"_a.noconvert(), "r"_a.noconvert(), "task_of"_a.noconvert(),
          "squares"_a, "threads"_a, "out"_a.noconvert());
}

}  // namespace
}  // namespace tasksieve

NB_MODULE(_core, m) {
    using namespace tasksieve;
    // Models that live until the interpreter ends keep their kernels' state alive: no leak.
    nb::set_leak_warnings(false);
    bind_storage<double>(m);
    bind_storage<float>(m);
    bind_storage<std::int8_t>(m);
    bind_storage<std::uint8_t>(m);
    m.def("use_blas", &py_use_blas);
    m.def("wide_registers", &wide_registers);
    m.def("allow_wide_registers", &allow_wide_registers, "allow"_a);
    m.def("anchored_ratios", &py_anchored_ratios, "anchors"_a.noconvert(), "coef"_a.noconvert(),
          "norms"_a.noconvert(), "remainder"_a.noconvert(), "shared_remainder"_a, "radius"_a, "group"_a.noconvert(),
          "l1"_a.none().noconvert(), "positive"_a, "threads"_a, "estimate"_a.noconvert(),
          "upper"_a.noconvert(), "chosen"_a.noconvert() = nb::none(), "moments"_a.noconvert() = nb::none());
    m.def("moment_bounds", &py_moment_bounds, "moments"_a.noconvert(), "first"_a.noconvert(), "longest"_a.noconvert(),
          "group"_a.noconvert(), "alpha"_a, "beta"_a, "first_unit"_a, "radius"_a, "rounding"_a,
          "upper"_a.noconvert());
    m.def("largest_magnitude", &py_largest_magnitude, "values"_a.noconvert(), "threads"_a);
    m.def("store_single", &py_store_single, "values"_a.noconvert(), "factor"_a, "least"_a, "threads"_a,
          "out"_a.noconvert());
    m.def("coordinate_descent", &py_coordinate_descent, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a,
          "columns"_a.noconvert(), "h"_a.noconvert(), "group"_a.noconvert(), "l1"_a.noconvert(), "ridge"_a,
          "positive"_a, "w"_a.noconvert(), "state"_a.noconvert(), "max_epochs"_a, "tol"_a,
          "gram"_a.none().noconvert(), "y_products"_a.none().noconvert(), "y_squared"_a);
    m.def("row_gauges", &py_row_gauges, "m"_a.noconvert(), "group"_a.noconvert(), "l1"_a.noconvert(), "positive"_a,
          "out"_a.noconvert());
    m.def("solve_rows", &py_solve_rows, "c"_a.noconvert(), "h"_a.noconvert(), "group"_a.noconvert(),
          "l1"_a.noconvert(), "ridge"_a, "positive"_a, "out"_a.noconvert());
    m.def("factor", &py_factor, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a, "columns"_a.noconvert(),
          "a"_a.noconvert(), "y"_a.noconvert(), "threads"_a, "factors"_a.noconvert(), "r"_a.noconvert());
    m.def("whiten", &py_whiten, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a, "columns"_a.noconvert(),
          "u"_a.noconvert(), "factors"_a.noconvert(), "threads"_a, "z"_a.noconvert());
    m.def("factor_shifted", &py_factor_shifted, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a,
          "columns"_a.noconvert(), "a"_a.noconvert(), "diagonal"_a.noconvert(), "y"_a.noconvert(), "threads"_a,
          "factors"_a.noconvert(), "r"_a.noconvert());
    m.def("whiten_each", &py_whiten_each<FloatColumns>, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a,
          "columns"_a.noconvert(), "u"_a.noconvert(), "factors"_a.noconvert(), "threads"_a, "z"_a.noconvert());
    m.def("whiten_each", &py_whiten_each<OutColumns>, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a,
          "columns"_a.noconvert(), "u"_a.noconvert(), "factors"_a.noconvert(), "threads"_a, "z"_a.noconvert());
    m.def("normal_matrix", &py_normal_matrix, "z"_a.noconvert(), "u"_a.none().noconvert(), "threads"_a,
          "m"_a.noconvert());
    m.def("normal_product", &py_normal_product, "z"_a.noconvert(), "u"_a.none().noconvert(), "v"_a.noconvert(),
          "threads"_a, "out"_a.noconvert());
    m.def("extend_grams", &py_extend_grams, "x"_a.noconvert(), "offsets"_a.noconvert(), "columns"_a.noconvert(),
          "known"_a, "threads"_a, "gram"_a.noconvert());
    m.def("gram_factor", &py_gram_factor, "gram"_a.noconvert(), "slots"_a.noconvert(), "a"_a.noconvert(),
          "products"_a.noconvert(), "threads"_a, "factors"_a.noconvert(), "w"_a.noconvert());
    m.def("gram_normal", &py_gram_normal, "factors"_a.noconvert(), "a"_a.noconvert(), "u"_a.noconvert(), "threads"_a,
          "m"_a.noconvert());
    m.def("reweight", &py_reweight, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a, "columns"_a.noconvert(),
          "w"_a.noconvert(), "basis"_a.noconvert(), "threads"_a, "out"_a.noconvert(), "h"_a.noconvert());
    m.def("combine", &py_combine, "x"_a.noconvert(), "offsets"_a.noconvert(), "shared"_a, "columns"_a.noconvert(),
          "w"_a.noconvert(), "threads"_a, "out"_a.noconvert());
    tasksieve::bind_online(m);
    bind_graph(m);
    bind_sorted(m);
}
