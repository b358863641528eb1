#include "arrays.hpp"
#include "sorted_columns.hpp"

namespace tasksieve {

namespace {

using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

StoredColumn::Type type_of(const AnyVector &column) {
    using Type = StoredColumn::Type;
    const nb::dlpack::dtype given = column.dtype();
    const auto is = [&](auto known) { return given == nb::dtype<decltype(known)>(); };
    if (is(double())) return Type::f64;
    if (is(float())) return Type::f32;
    if (is(std::int8_t())) return Type::i8;
    if (is(std::int16_t())) return Type::i16;
    if (is(std::int32_t())) return Type::i32;
    if (is(std::int64_t())) return Type::i64;
    if (is(std::uint8_t())) return Type::u8;
    if (is(std::uint16_t())) return Type::u16;
    if (is(std::uint32_t())) return Type::u32;
    require(is(std::uint64_t()), "columns must be of whole numbers or of float32 or float64");
    return Type::u64;
}

void py_sorted_columns(const std::vector<AnyVector> &columns, Maybe<Indices> order, Indices offsets,
                       Maybe<Rows<double>> shifts, int threads, OutRows<double> out) {
    const index_t count = index_t(columns.size()), rows = out.shape(1), tasks = check_offsets(offsets, rows);
    require(index_t(out.shape(0)) == count, "out: a row for each column");
    require(!shifts || shaped(*shifts, tasks, count), "shifts: one for each task and column");
    std::vector<StoredColumn> stored;
    for (const AnyVector &column : columns) {
        const index_t size = length(column);
        require(order ? size == length(columns.front()) : size == rows, "columns must have the same size");
        stored.push_back({column.data(), type_of(column)});
    }
    if (order) {
        require(length(*order) == rows, "order has the wrong size");
        check_indices(*order, count ? length(columns.front()) : 0, "order: row out of range");
    }
    nb::gil_scoped_release release;
    sorted_columns(stored.data(), count, data_or_null(order), rows, offsets.data(), tasks, data_or_null(shifts),
                   threads, out.data());
}

}  // namespace

void bind_sorted_columns(nb::module_ &m) {
    m.def("sorted_columns", &py_sorted_columns, nb::arg("columns").noconvert(), maybe("order"), array("offsets"),
          maybe("shifts"), "threads"_a, array("out"));
}

}  // namespace tasksieve
