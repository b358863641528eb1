#include "arrays.hpp"
#include "gram.hpp"

namespace tasksieve {

namespace {

void py_extend_grams(Columns<double> x, Indices offsets, Indices columns, index_t known, int threads,
                     OutCube<double> gram) {
    const index_t rows = x.shape(0), total = length(columns), matrices = gram.shape(0), capacity = gram.shape(1);
    check_indices(columns, x.shape(1));
    require(known >= 0 && known <= total && total <= capacity, "gram is too small");
    require(index_t(gram.shape(2)) == capacity, "gram must hold square matrices");
    require(matrices == 1 || matrices == check_offsets(offsets, rows), "one Gram matrix, or one a task");
    nb::gil_scoped_release release;
    extend_grams(x.data(), rows, offsets.data(), matrices, columns.data(), known, total, capacity, threads,
                 gram.data());
}

bool py_gram_factor(Cube<double> gram, Indices slots, Vector<double> a, Rows<double> products, int threads,
                    OutCube<double> factors, OutRows<double> w) {
    const index_t matrices = gram.shape(0), capacity = gram.shape(1), count = length(slots), tasks = products.shape(1);
    check_indices(slots, capacity);
    require(index_t(gram.shape(2)) == capacity, "gram must hold square matrices");
    require(length(a) == count && index_t(products.shape(0)) == count, "one weight and one row a slot");
    require(matrices == 1 || matrices == tasks, "one Gram matrix, or one a task");
    require(shaped(w, count, tasks), "w has the wrong shape");
    require(shaped(factors, matrices, count, count), "factors has the wrong shape");
    nb::gil_scoped_release release;
    return gram_factor(gram.data(), matrices, capacity, slots.data(), a.data(), count, products.data(), tasks, threads,
                       factors.data(), w.data());
}

bool py_gram_normal(Cube<double> factors, Vector<double> a, Rows<double> u, int threads, OutRows<float> m) {
    const index_t matrices = factors.shape(0), count = length(a), tasks = u.shape(1);
    require(shaped(factors, matrices, count, count), "factors has the wrong shape");
    require(index_t(u.shape(0)) == count && (matrices == 1 || matrices == tasks), "u has the wrong shape");
    require(shaped(m, count, count), "m has the wrong shape");
    nb::gil_scoped_release release;
    return gram_normal(factors.data(), matrices, a.data(), u.data(), count, tasks, threads, m.data());
}

}  // namespace

void bind_gram(nb::module_ &m) {
    m.def("extend_grams", &py_extend_grams, array("x"), array("offsets"), array("columns"), "known"_a, "threads"_a,
          array("gram"));
    m.def("gram_factor", &py_gram_factor, array("gram"), array("slots"), array("a"), array("products"), "threads"_a,
          array("factors"), array("w"));
    m.def("gram_normal", &py_gram_normal, array("factors"), array("a"), array("u"), "threads"_a, array("m"));
}

}  // namespace tasksieve
