#include "arrays.hpp"
#include "graph_rows.hpp"

namespace tasksieve {

namespace {

template <class T>
GraphRows dense_rows(Rows<T> x, int threads) {
    DenseRows<T> dense;
    dense.x = x.data();
    dense.rows = x.shape(0);
    dense.features = x.shape(1);
    nb::gil_scoped_release release;
    return {packed_if_sparse(dense, threads)};
}

template <class T, class I>
GraphRows sparse_rows(Vector<T> data, Vector<I> indices, Vector<I> indptr, index_t features) {
    SparseRows<T, I> rows;
    rows.matrix = compressed(data, indices, indptr, features);
    rows.rows = rows.matrix.lines;
    rows.features = features;
    return {rows};
}

GraphRows string_rows(Rows<std::uint8_t> text, Vector<std::uint8_t> letters, int bits, int direct, Indices offset,
                      Vector<float> weight, index_t features) {
    StringRows rows;
    rows.text = text.data();
    rows.rows = text.shape(0);
    rows.length = text.shape(1);
    rows.features = features;
    rows.letters = letters.data();
    rows.bits = bits;
    rows.degree = static_cast<int>(weight.size());
    rows.direct = direct;
    rows.offset = offset.data();
    rows.weight = weight.data();
    require(letters.size() == 256, "letters has one entry a byte");
    require(rows.degree >= 1 && bits >= 1 && bits * rows.degree <= 64, "k-mers do not fit 64 bits");
    require(direct >= 0 && direct <= rows.degree && offset.size() == weight.size() + 1, "offset");
    require(features >= 1 && features <= (index_t(1) << 31), "features");
    require(rows.length >= 1 && rows.length <= StringRows::longest_string, "length");
    for (int k = 0; k < direct; ++k)
        require(bits * (k + 1) < 40 && offset.data()[k] >= 0 &&
                    offset.data()[k + 1] == offset.data()[k] + (rows.length << (bits * (k + 1))),
                "offset of a direct degree");
    require(offset.data()[direct] >= 0 && offset.data()[direct] < features + (direct == rows.degree),
            "no room for hashed degrees");
    for (int b = 0; b < 256; ++b)
        require(letters.data()[b] == 255 || letters.data()[b] < (1 << bits), "letter code out of range");
    rows.prepare();
    return {rows};
}

void py_row_squares(const GraphRows &rows, int threads, OutVector<double> out) {
    require(length(out) == rows.rows(), "one entry a row");
    nb::gil_scoped_release release;
    row_squares(rows.any, threads, out.data());
}

void py_count_hashed(const GraphRows &rows, int threads, OutVector<index_t> counts) {
    require(rows.strings() && length(counts) == rows.rows(), "one count a string");
    nb::gil_scoped_release release;
    count_hashed(rows.any, threads, counts.data());
}

void py_hash_rows(const GraphRows &rows, int threads, Indices indptr, OutVector<std::int32_t> indices,
                  OutVector<double> values) {
    require(rows.strings() && indices.size() == values.size(), "a value an index of a string's feature");
    require(check_offsets(indptr, length(indices)) == rows.rows(), "indptr: a span a string");
    nb::gil_scoped_release release;
    hash_rows(rows.any, threads, indptr.data(), indices.data(), values.data());
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    m.def("sparse_rows", &sparse_rows<T, I>, array("data"), array("indices"), array("indptr"), "features"_a,
          nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());
}

template <class T>
void bind_type(nb::module_ &m) {
    m.def("dense_rows", &dense_rows<T>, array("x"), "threads"_a, nb::keep_alive<0, 1>());
    bind_sparse<T, std::int32_t>(m);
    bind_sparse<T, std::int64_t>(m);
}

}  // namespace

void bind_graph_rows(nb::module_ &m) {
    nb::class_<GraphRows>(m, "GraphRows").def_prop_ro("packed", &GraphRows::packed);
#define TASKSIEVE_BIND(T) bind_type<T>(m);
    TASKSIEVE_STORED_TYPES(TASKSIEVE_BIND)
    m.def("string_rows", &string_rows, array("text"), array("letters"), "bits"_a, "direct"_a, array("offset"),
          array("weight"), "features"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 5>(),
          nb::keep_alive<0, 6>());
    m.def("row_squares", &py_row_squares, "rows"_a, "threads"_a, array("out"));
    m.def("count_hashed", &py_count_hashed, "rows"_a, "threads"_a, array("counts"));
    m.def("hash_rows", &py_hash_rows, "rows"_a, "threads"_a, array("indptr"), array("indices"), array("values"));
}

}  // namespace tasksieve
