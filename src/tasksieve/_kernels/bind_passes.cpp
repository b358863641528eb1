#include "arrays.hpp"
#include "passes.hpp"

namespace tasksieve {

namespace {

// How many columns are meant, all of them or those chosen.
index_t check_chosen(const Maybe<Indices> &columns, index_t available) {
    if (!columns) return available;
    check_indices(*columns, available);
    return length(*columns);
}

template <class T>
void py_segment_products(Columns<T> x, Maybe<Indices> columns, Vector<double> r, Indices offsets, bool squares,
                         int threads, OutRows<double> out) {
    const index_t rows = x.shape(0), tasks = check_offsets(offsets, rows), count = check_chosen(columns, x.shape(1));
    require(length(r) == rows, "r must have one entry a row");
    require(shaped(out, count, tasks), "out has the wrong shape");
    nb::gil_scoped_release release;
    segment_products(x.data(), rows, data_or_null(columns), count, r.data(), offsets.data(), tasks, squares, threads,
                     out.data());
}

template <class T>
void py_shared_products(Columns<T> x, Maybe<Indices> columns, Columns<double> r, bool squares, int threads,
                        OutRows<double> out) {
    const index_t rows = x.shape(0), tasks = r.shape(1), count = check_chosen(columns, x.shape(1));
    require(index_t(r.shape(0)) == rows, "r must have one row a row of x");
    require(shaped(out, count, tasks), "out has the wrong shape");
    nb::gil_scoped_release release;
    shared_products(x.data(), rows, data_or_null(columns), count, r.data(), tasks, squares, threads, out.data());
}

template <class T, class I>
void py_sparse_products(Vector<T> data, Vector<I> indices, Vector<I> indptr, Maybe<Indices> columns, Rows<double> r,
                        Maybe<Indices> task_of, index_t tasks, bool squares, int threads, OutRows<double> out) {
    const auto x = compressed(data, indices, indptr);
    const index_t rows = r.shape(0), vectors = r.shape(1), count = check_chosen(columns, x.lines);
    require(task_of ? vectors >= 1 && length(*task_of) == rows : vectors == tasks, "r has the wrong shape");
    if (task_of) check_indices(*task_of, tasks, "task out of range");
    require(shaped(out, count, task_of ? vectors * tasks : tasks), "out has the wrong shape");
    nb::gil_scoped_release release;
    sparse_products(x, data_or_null(columns), count, r.data(), vectors, data_or_null(task_of), tasks, squares, threads,
                    out.data());
}

// Addresses of arrays in a list, for kernels of several vectors.
template <class A>
auto addresses(std::vector<A> &arrays) {
    std::vector<decltype(arrays.front().data())> found;
    for (auto &array : arrays) found.push_back(array.data());
    return found;
}

template <class T>
void py_row_products(Rows<T> x, std::vector<Vector<double>> r, index_t squares, std::vector<Indices> task_of,
                     int threads, std::vector<OutRows<double>> out) {
    const index_t rows = x.shape(0), features = x.shape(1), vectors = length(r);
    require(squares >= 0 && squares <= vectors, "more squares than vectors");
    require(length(task_of) == vectors && length(out) == vectors, "one array in task_of and out a vector");
    for (index_t k = 0; k < vectors; ++k) {
        require(length(r[k]) == rows && length(task_of[k]) == rows, "one entry of r and task_of a row");
        require(index_t(out[k].shape(1)) == features, "out has the wrong shape");
        check_indices(task_of[k], out[k].shape(0), "task out of range");
    }
    const auto values = addresses(r);
    const auto homes = addresses(task_of);
    const auto targets = addresses(out);
    nb::gil_scoped_release release;
    row_products(x.data(), rows, features, values.data(), squares, vectors, homes.data(), threads, targets.data());
}

template <class T>
void py_many_products(Columns<T> x, std::vector<Vector<double>> r, index_t squares, Indices offsets, int threads,
                      std::vector<OutRows<double>> out) {
    const index_t rows = x.shape(0), count = x.shape(1), tasks = check_offsets(offsets, rows), vectors = length(r);
    require(squares >= 0 && squares <= vectors, "more squares than vectors");
    require(length(out) == vectors, "one array in out a vector");
    for (index_t k = 0; k < vectors; ++k) {
        require(length(r[k]) == rows, "each vector must have one entry a row");
        require(shaped(out[k], count, tasks), "out has the wrong shape");
    }
    const auto values = addresses(r);
    const auto targets = addresses(out);
    nb::gil_scoped_release release;
    many_products(x.data(), rows, count, values.data(), squares, vectors, offsets.data(), tasks, threads,
                  targets.data());
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    m.def("sparse_products", &py_sparse_products<T, I>, array("data"), array("indices"), array("indptr"),
          maybe("columns"), array("r"), maybe("task_of"), "tasks"_a, "squares"_a, "threads"_a, array("out"));
}

template <class T>
void bind_type(nb::module_ &m) {
    m.def("segment_products", &py_segment_products<T>, array("x"), maybe("columns"), array("r"), array("offsets"),
          "squares"_a, "threads"_a, array("out"));
    m.def("shared_products", &py_shared_products<T>, array("x"), maybe("columns"), array("r"), "squares"_a,
          "threads"_a, array("out"));
    bind_sparse<T, std::int32_t>(m);
    bind_sparse<T, std::int64_t>(m);
    m.def("many_products", &py_many_products<T>, array("x"), array("r"), "squares"_a, array("offsets"), "threads"_a,
          array("out"));
    m.def("row_products", &py_row_products<T>, array("x"), array("r"), "squares"_a, array("task_of"), "threads"_a,
          array("out"));
}

}  // namespace

void bind_passes(nb::module_ &m) {
#define TASKSIEVE_BIND(T) bind_type<T>(m);
    TASKSIEVE_STORED_TYPES(TASKSIEVE_BIND)
}

}  // namespace tasksieve
