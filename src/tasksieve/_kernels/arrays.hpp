// Python's arrays as checked views: what the bindings share. Kernels see pointers that have been looked at here.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <tuple>

#include "checks.hpp"
#include "compressed.hpp"

namespace tasksieve {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using OutVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutRows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutColumns = nb::ndarray<T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
template <class T>
using OutCube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = OutVector<const T>;
template <class T>
using Rows = OutRows<const T>;
template <class T>
using Columns = OutColumns<const T>;
template <class T>
using Cube = OutCube<const T>;
template <class T>
using Maybe = std::optional<T>;
using Indices = Vector<index_t>;

// Arguments: an array that is taken as it lies in memory, or None in its place.
inline auto array(const char *name) { return nb::arg(name).noconvert(); }
inline auto maybe(const char *name) { return nb::arg(name).none().noconvert(); }

inline void require(bool condition, const char *message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class A>
index_t length(const A &array) {
    return static_cast<index_t>(array.size());
}

template <class A>
bool shaped(const A &array, index_t rows, index_t columns) {
    return static_cast<index_t>(array.shape(0)) == rows && static_cast<index_t>(array.shape(1)) == columns;
}

template <class A>
bool shaped(const A &cube, index_t matrices, index_t rows, index_t columns) {
    return static_cast<index_t>(cube.shape(0)) == matrices && static_cast<index_t>(cube.shape(1)) == rows &&
           static_cast<index_t>(cube.shape(2)) == columns;
}

template <class A>
auto data_or_null(const Maybe<A> &array) -> decltype(array->data()) {
    return array ? array->data() : nullptr;
}

inline void check_indices(const Indices &indices, index_t available, const char *message = "column index out of range") {
    require(all_inside(indices.data(), length(indices), available), message);
}

// The number of tasks, where offsets need no other check.
inline index_t tasks_of(const Indices &offsets) {
    require(offsets.size() >= 1, "offsets must start at 0");
    return length(offsets) - 1;
}

// Rows cut into tasks: their number.
inline index_t check_offsets(const Indices &offsets, index_t rows) {
    const index_t tasks = tasks_of(offsets), *start = offsets.data();
    require(start[0] == 0, "offsets must start at 0");
    require(std::is_sorted(start, start + tasks + 1), "offsets must not decrease");
    require(start[tasks] == rows, "offsets must end at the number of rows");
    return tasks;
}

// Whether the pointers of compressed rows or columns stay inside the stored entries: a look at every line.
template <class T, class I, class P>
bool consistent(const Vector<T> &data, const Vector<I> &indices, const Vector<P> &indptr) {
    return indptr.size() >= 1 && data.size() == indices.size() && indptr.data()[0] == 0 &&
           std::is_sorted(indptr.data(), indptr.data() + indptr.size()) &&
           static_cast<index_t>(indptr.data()[indptr.size() - 1]) <= length(data);
}

// Compressed rows or columns whose indices someone has looked at (design/sparse_format.py): passes do not do it again.
template <class T, class I, class P>
Compressed<T, I, P> compressed(const Vector<T> &data, const Vector<I> &indices, const Vector<P> &indptr) {
    require(consistent(data, indices, indptr), "indptr of sparse data must rise from 0 to at most the number of entries");
    return {data.data(), indices.data(), indptr.data(), length(indptr) - 1};
}

// Compressed rows that were not checked yet: a look at every index.
template <class T, class I, class P>
Compressed<T, I, P> compressed(const Vector<T> &data, const Vector<I> &indices, const Vector<P> &indptr,
                               index_t width) {
    const auto lines = compressed(data, indices, indptr);
    require(all_inside(indices.data(), lines.indptr[lines.lines], width), "column index of a sparse row out of range");
    return lines;
}

// A copy of some numbers as an array of its own: of this shape, or as they lie.
template <class T, class... Shape>
nb::object copied(const std::vector<T> &values, Shape... shape) {
    T *data = new T[std::max<std::size_t>(values.size(), 1)];
    std::copy(values.begin(), values.end(), data);
    nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<T *>(p); });
    if constexpr (sizeof...(shape) > 0)
        return nb::cast(nb::ndarray<nb::numpy, T>(data, {static_cast<size_t>(shape)...}, owner));
    else
        return nb::cast(nb::ndarray<nb::numpy, T>(data, {values.size()}, owner));
}

}  // namespace tasksieve
