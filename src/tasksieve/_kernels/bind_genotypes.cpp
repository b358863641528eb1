#include "arrays.hpp"
#include "genotypes.hpp"

namespace tasksieve {

namespace {

using Packed = Rows<std::uint8_t>;  // a variant's bytes in each row

Genotypes genotypes(const Packed &packed, index_t rows) {
    require(rows >= 0 && index_t(packed.shape(1)) >= (rows + 3) / 4, "fewer bytes a variant than the rows need");
    return {packed.data(), index_t(packed.shape(1)), rows};
}

index_t check_chosen(const Maybe<Indices> &columns, index_t available) {
    if (!columns) return available;
    check_indices(*columns, available);
    return length(*columns);
}

Holes holes(const Maybe<Indices> &hole_of, const Rows<double> &means, index_t variants, index_t tasks) {
    require(index_t(means.shape(1)) == tasks || !hole_of, "means must have a column a task");
    if (!hole_of) return {nullptr, nullptr};
    require(length(*hole_of) == variants, "hole_of must have an entry a variant");
    for (index_t j = 0; j < variants; ++j)
        require(hole_of->data()[j] < index_t(means.shape(0)), "hole_of is out of range");
    return {hole_of->data(), means.data()};
}

void py_products(Packed packed, index_t rows, Maybe<Indices> hole_of, Rows<double> means, Maybe<Indices> columns,
                 std::vector<Vector<double>> r, index_t squares, Indices offsets, int threads,
                 std::vector<OutRows<double>> out, bool portable) {
    const Genotypes x = genotypes(packed, rows);
    const index_t tasks = check_offsets(offsets, rows), vectors = length(r);
    const index_t count = check_chosen(columns, packed.shape(0));
    const Holes filled = holes(hole_of, means, packed.shape(0), tasks);
    require(squares >= 0 && squares <= vectors, "more squares than vectors");
    require(length(out) == vectors, "one array in out a vector");
    std::vector<const double *> values;
    std::vector<double *> targets;
    for (index_t m = 0; m < vectors; ++m) {
        require(length(r[m]) == rows, "each vector must have one entry a row");
        require(shaped(out[m], count, tasks), "out has the wrong shape");
        values.push_back(r[m].data());
        targets.push_back(out[m].data());
    }
    nb::gil_scoped_release release;
    genotype_products(x, filled, data_or_null(columns), count, values.data(), squares, vectors, offsets.data(), tasks,
                      threads, targets.data(), portable);
}

void py_shared_products(Packed packed, index_t rows, Maybe<Indices> hole_of, Rows<double> means,
                        Maybe<Indices> columns, Columns<double> r, bool squares, int threads, OutRows<double> out) {
    const Genotypes x = genotypes(packed, rows);
    const index_t count = check_chosen(columns, packed.shape(0));
    const Holes filled = holes(hole_of, means, packed.shape(0), 1);
    require(index_t(r.shape(0)) == rows, "r must have one row a row of x");
    require(shaped(out, count, r.shape(1)), "out has the wrong shape");
    nb::gil_scoped_release release;
    genotype_shared_products(x, filled, data_or_null(columns), count, r.data(), r.shape(1), squares, threads,
                             out.data());
}

void py_columns(Packed packed, index_t rows, Maybe<Indices> hole_of, Rows<double> means, Maybe<Indices> columns,
                Indices offsets, int threads, OutColumns<double> out) {
    const Genotypes x = genotypes(packed, rows);
    const index_t tasks = check_offsets(offsets, rows), count = check_chosen(columns, packed.shape(0));
    const Holes filled = holes(hole_of, means, packed.shape(0), tasks);
    require(shaped(out, rows, count), "out has the wrong shape");
    nb::gil_scoped_release release;
    genotype_columns(x, filled, data_or_null(columns), count, offsets.data(), tasks, threads, out.data());
}

void py_counts(Packed packed, index_t rows, Maybe<Indices> columns, Indices offsets, int threads,
               OutCube<std::int32_t> out) {
    const Genotypes x = genotypes(packed, rows);
    const index_t tasks = check_offsets(offsets, rows), count = check_chosen(columns, packed.shape(0));
    require(rows < (index_t(1) << 31), "more rows than counts can hold");
    require(shaped(out, count, tasks, 3), "out has the wrong shape");
    nb::gil_scoped_release release;
    genotype_counts(x, data_or_null(columns), count, offsets.data(), tasks, threads, out.data());
}

void py_row_holes(Packed packed, index_t rows, Maybe<Indices> columns, int threads, OutVector<index_t> out) {
    const Genotypes x = genotypes(packed, rows);
    const index_t count = check_chosen(columns, packed.shape(0));
    require(length(out) == rows, "out must have one entry a row");
    nb::gil_scoped_release release;
    genotype_row_holes(x, data_or_null(columns), count, threads, out.data());
}

void py_copy(Packed packed, index_t rows, Indices sources, Maybe<Vector<std::uint8_t>> flips, Indices targets,
             Indices order, index_t first, int threads, OutRows<std::uint8_t> out) {
    const Genotypes x = genotypes(packed, rows);
    const index_t count = length(sources), placed = length(order);
    require(length(targets) == count && (!flips || length(*flips) == count), "one target and one flip a source");
    check_indices(targets, out.shape(0), "target out of range");
    for (index_t k = 0; k < count; ++k)
        require(sources.data()[k] < index_t(packed.shape(0)), "source out of range");
    for (index_t i = 0; i < placed; ++i) require(order.data()[i] < rows, "row out of range");
    require(first >= 0 && first % 4 == 0, "first must be a multiple of 4");
    require(rows < (index_t(1) << 31) && first / 4 + (placed + 3) / 4 <= index_t(out.shape(1)), "out is too narrow");
    nb::gil_scoped_release release;
    copy_genotypes(x, sources.data(), data_or_null(flips), targets.data(), count, order.data(), placed, first,
                   out.data(), out.shape(1), threads);
}

}  // namespace

void bind_genotypes(nb::module_ &m) {
    m.def("genotype_products", &py_products, array("packed"), "rows"_a, maybe("hole_of"), array("means"),
          maybe("columns"), array("r"), "squares"_a, array("offsets"), "threads"_a, array("out"),
          "portable"_a = false);
    m.def("genotype_shared_products", &py_shared_products, array("packed"), "rows"_a, maybe("hole_of"), array("means"),
          maybe("columns"), array("r"), "squares"_a, "threads"_a, array("out"));
    m.def("genotype_columns", &py_columns, array("packed"), "rows"_a, maybe("hole_of"), array("means"),
          maybe("columns"), array("offsets"), "threads"_a, array("out"));
    m.def("genotype_counts", &py_counts, array("packed"), "rows"_a, maybe("columns"), array("offsets"), "threads"_a,
          array("out"));
    m.def("genotype_row_holes", &py_row_holes, array("packed"), "rows"_a, maybe("columns"), "threads"_a, array("out"));
    m.def("copy_genotypes", &py_copy, array("packed"), "rows"_a, array("sources"), maybe("flips"), array("targets"),
          array("order"), "first"_a, "threads"_a, array("out"));
}

}  // namespace tasksieve
