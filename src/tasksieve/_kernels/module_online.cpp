// Bindings of the online learner: rows are checked here, once, and learned without the interpreter lock.
#include <algorithm>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "dual_averaging.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tasksieve {

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutRows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weights = std::optional<Vector<double>>;

void require(bool condition, const char *message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class T>
nb::object to_array(std::vector<T> &&values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

void check_rows(const DualAveraging &model, index_t count, const Vector<double> &y, const Vector<index_t> &task,
                const Weights &weight) {
    require(index_t(y.size()) == count && index_t(task.size()) == count, "one y and one task a row");
    require(!weight || index_t(weight->size()) == count, "one weight a row");
    for (index_t i = 0; i < count; ++i)
        require(task.data()[i] >= 0 && task.data()[i] < model.tasks, "task out of range");
}

// A NaN for l1 leaves it as it is: `set_l1` then says it, feature by feature.
void configure(DualAveraging &model, int penalty, int rule, int loss, double alpha, double gamma, double ridge,
               double enhanced, bool intercept, bool average, double l1) {
    const OnlineSettings old = model.settings;
    model.settings = {OnlinePenalty(penalty), MissingRule(rule), OnlineLoss(loss), alpha, gamma, ridge,
                      enhanced,               intercept,         average};
    if (old.penalty != model.settings.penalty || old.rule != model.settings.rule || old.alpha != alpha ||
        old.gamma != gamma || old.enhanced != enhanced)
        model.forget_norms();
    if (!std::isnan(l1) && l1 != model.l1_default) {
        model.l1_default = l1;
        std::fill(model.l1.begin(), model.l1.end(), l1);
        model.l1_uniform = true;
        model.forget_norms();
    }
    if (average) model.total.resize(model.sums.size(), 0.0);
}

void set_l1(DualAveraging &model, Vector<double> values) {
    require(index_t(values.size()) == model.features, "one l1 a feature");
    if (std::equal(values.data(), values.data() + values.size(), model.l1.begin())) return;
    std::copy_n(values.data(), values.size(), model.l1.begin());
    model.l1_uniform = false;
    model.forget_norms();
}

// Each learn_... returns the number of rows learned: fewer than given if a gradient was not finite.
index_t learn_dense(DualAveraging &model, Rows x, Vector<double> y, Vector<index_t> task, Weights weight) {
    const index_t count = x.shape(0);
    require(index_t(x.shape(1)) == model.features, "x has the wrong number of features");
    check_rows(model, count, y, task, weight);
    nb::gil_scoped_release release;
    model.set_layout(true);
    for (index_t i = 0; i < count; ++i) {
        const double s = weight ? weight->data()[i] : 1.0;
        const OnlineRow<std::int32_t> row{x.data() + i * model.features, nullptr, model.features};
        if (s > 0.0 && !model.learn(row, y.data()[i], task.data()[i], s)) return i;
    }
    return count;
}

template <class I>
index_t learn_sparse(DualAveraging &model, Vector<double> data, Vector<I> indices, Vector<I> indptr,
                     Vector<double> y, Vector<index_t> task, Weights weight) {
    const index_t count = index_t(indptr.size()) - 1;
    require(count >= 0 && data.size() == indices.size() && index_t(indptr.data()[count]) <= index_t(data.size()) &&
                indptr.data()[0] >= 0,
            "inconsistent sparse rows");
    check_rows(model, count, y, task, weight);
    for (index_t i = 0; i < count; ++i) require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
    const index_t entries = index_t(indices.size());
    require(entries == 0 || largest_index(indices.data(), entries) < std::uint64_t(model.features),
            "feature out of range");
    nb::gil_scoped_release release;
    model.arrange_for_sparse();
    return model.learn_rows(OnlineRows<I>{data.data(), indices.data(), indptr.data(), count}, y.data(), task.data(),
                            weight ? weight->data() : nullptr);
}

// --- chunks in the plainest form ---------------------------------------------------------------------------------

// The codes of integer labels, from a table (-1: none); false if one has no code.
bool read_codes(const Vector<index_t> &label, const Vector<index_t> &table, std::vector<index_t> &codes) {
    codes.resize(label.size());
    const size_t known = table.size();
    bool all = true;
    for (size_t i = 0; i < label.size(); ++i) {
        const bool inside = size_t(label.data()[i]) < known;
        codes[i] = inside ? table.data()[label.data()[i]] : -1;
        all = all && codes[i] >= 0;
    }
    return all;
}

// Each learns like learn_..., or returns -1 without having done anything where an entry is not finite, or a label has
// no code: the caller then looks closer.
index_t learn_plain_dense(DualAveraging &model, Rows x, Vector<double> y, Vector<index_t> label,
                          Vector<index_t> table) {
    static thread_local std::vector<index_t> codes;
    if (x.shape(0) != y.size() || !all_finite(x.data(), index_t(x.size())) ||
        !all_finite(y.data(), index_t(y.size())) || !read_codes(label, table, codes))
        return -1;
    return learn_dense(model, x, y, Vector<index_t>(codes.data(), {codes.size()}), {});
}

template <class I>
index_t learn_plain_sparse(DualAveraging &model, Vector<double> data, Vector<I> indices, Vector<I> indptr,
                           Vector<double> y, Vector<index_t> label, Vector<index_t> table) {
    static thread_local std::vector<index_t> codes;
    if (indptr.size() != y.size() + 1 || !all_finite(data.data(), index_t(data.size())) ||
        !all_finite(y.data(), index_t(y.size())) || !read_codes(label, table, codes))
        return -1;
    return learn_sparse<I>(model, data, indices, indptr, y, Vector<index_t>(codes.data(), {codes.size()}), {});
}

// --- one row a call ---------------------------------------------------------------------------------------------

struct Buffers {
    std::vector<std::int64_t> index;
    std::vector<double> value;
};
thread_local Buffers buffers;

void check_finite(const double *values, index_t count) {
    if (!all_finite(values, count)) throw nb::value_error("x contains NaN or infinity");
}

bool learn_array(DualAveraging &model, Vector<double> x, double y, index_t task, double weight) {
    if (index_t(x.size()) != model.features) throw nb::value_error("x has the wrong number of features");
    require(task >= 0 && task < model.tasks, "task out of range");
    check_finite(x.data(), model.features);
    model.set_layout(true);
    return model.learn(OnlineRow<std::int32_t>{x.data(), nullptr, model.features}, y, task, weight);
}

// Reads {name: value} into the buffers; unknown names get the next index, or are left out.
index_t read_dict(DualAveraging &model, nb::dict x, nb::dict vocabulary, bool grow) {
    buffers.index.clear();
    buffers.value.clear();
    index_t features = model.features;
    PyObject *key, *item;
    Py_ssize_t place = 0;
    while (PyDict_Next(x.ptr(), &place, &key, &item)) {
        const double value = PyFloat_AsDouble(item);
        if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
        if (!std::isfinite(value)) throw nb::value_error("x contains NaN or infinity");
        PyObject *found = PyDict_GetItemWithError(vocabulary.ptr(), key);
        if (!found && PyErr_Occurred()) throw nb::python_error();
        index_t index;
        if (found) {
            index = PyLong_AsLongLong(found);
            if (index < 0 || index >= features) throw nb::value_error("vocabulary index out of range");
        } else if (grow) {
            index = features++;
            nb::object number = nb::int_(index);
            if (PyDict_SetItem(vocabulary.ptr(), key, number.ptr())) throw nb::python_error();
        } else {
            continue;
        }
        buffers.index.push_back(index);
        buffers.value.push_back(value);
    }
    return features;
}

bool learn_dict(DualAveraging &model, nb::dict x, nb::dict vocabulary, double y, index_t task, double weight) {
    const index_t features = read_dict(model, x, vocabulary, true);
    require(task >= 0 && task < model.tasks, "task out of range");
    model.set_layout(false);
    if (features > model.features) model.resize(features, model.tasks);
    const OnlineRow<std::int64_t> row{buffers.value.data(), buffers.index.data(), index_t(buffers.index.size())};
    return model.learn(row, y, task, weight);
}

template <class Row>
double shown_score(DualAveraging &model, const Row &row, index_t task) {
    if (model.round_task.empty()) return model.score(row, task);
    DualAveraging closed = model;  // as if the open round ended now
    closed.close_round();
    return closed.score(row, task);
}

double score_array(DualAveraging &model, Vector<double> x, index_t task) {
    if (index_t(x.size()) != model.features) throw nb::value_error("x has the wrong number of features");
    require(task >= 0 && task < model.tasks, "task out of range");
    check_finite(x.data(), model.features);
    model.set_layout(true);
    return shown_score(model, OnlineRow<std::int32_t>{x.data(), nullptr, model.features}, task);
}

double score_dict(DualAveraging &model, nb::dict x, nb::dict vocabulary, index_t task) {
    require(task >= 0 && task < model.tasks, "task out of range");
    read_dict(model, x, vocabulary, false);
    model.set_layout(false);
    const OnlineRow<std::int64_t> row{buffers.value.data(), buffers.index.data(), index_t(buffers.index.size())};
    return shown_score(model, row, task);
}

double score_sparse(DualAveraging &model, Vector<double> value, Vector<std::int64_t> index, index_t task) {
    require(task >= 0 && task < model.tasks && value.size() == index.size(), "one value an index");
    for (size_t k = 0; k < index.size(); ++k)
        require(index.data()[k] >= 0 && index.data()[k] < model.features, "feature out of range");
    model.arrange_for_sparse();
    return shown_score(model, OnlineRow<std::int64_t>{value.data(), index.data(), index_t(index.size())}, task);
}

// --- what it has learned ----------------------------------------------------------------------------------------

void coefficients(const DualAveraging &model, OutRows out) {
    require(index_t(out.shape(0)) == model.tasks && index_t(out.shape(1)) == model.features, "out: tasks x features");
    nb::gil_scoped_release release;
    model.weights(out.data());
}

void intercepts(const DualAveraging &model, OutVector out) {
    require(index_t(out.size()) == model.tasks, "out: one entry a task");
    model.intercepts(out.data());
}

std::vector<double> by_task(const DualAveraging &model, const Cells &cells) {
    std::vector<double> out(model.tasks * model.features, 0.0);
    if (cells.empty()) return out;
    for (index_t q = 0; q < model.tasks; ++q)
        for (index_t j = 0; j < model.features; ++j)
            out[q * model.features + j] =
                model.task_major ? cells[q * model.width + j] : cells[j * model.capacity + q];
    return out;
}

nb::dict state(const DualAveraging &model) {
    nb::dict d;
    d["shape"] = to_array(std::vector<index_t>{model.features, model.tasks, model.steps, model.rows,
                                               index_t(model.task_major), index_t(model.sizes_ready),
                                               model.capacity});
    d["sums"] = to_array(by_task(model, model.sums));
    d["total"] = to_array(model.settings.average ? by_task(model, model.total) : std::vector<double>());
    d["sizes"] = to_array(std::vector<double>(model.sizes.begin(), model.sizes.begin() + model.features));
    d["l1"] = to_array(std::vector<double>(model.l1.begin(), model.l1.begin() + model.features));
    d["weight"] = to_array(std::vector<double>(model.weight));
    d["offset_sums"] = to_array(std::vector<double>(model.offset_sums));
    d["offset_total"] = to_array(std::vector<double>(model.offset_total));
    d["round_task"] = to_array(std::vector<index_t>(model.round_task));
    d["round_start"] = to_array(std::vector<index_t>(model.round_start));
    d["round_index"] = to_array(std::vector<index_t>(model.round_index));
    d["round_gradient"] = to_array(std::vector<double>(model.round_gradient));
    d["round_value"] = to_array(std::vector<double>(model.round_value));
    return d;
}

template <class T>
std::vector<T> from_state(const nb::dict &d, const char *name) {
    auto array = nb::cast<Vector<T>>(d[name]);
    return std::vector<T>(array.data(), array.data() + array.size());
}

// The settings must have been given before.
void restore(DualAveraging &model, nb::dict d) {
    const auto shape = from_state<index_t>(d, "shape");
    require(shape.size() == 7 && shape[0] >= 0 && shape[1] >= 0, "broken state");
    const index_t features = shape[0], tasks = shape[1];
    const auto sums = from_state<double>(d, "sums"), total = from_state<double>(d, "total");
    // Nothing is allocated on the word of a number alone: the arrays that are here must bear it out (no products, which
    // could overflow).
    require(from_state<double>(d, "sizes").size() == size_t(features) && from_state<double>(d, "weight").size() == size_t(tasks),
            "broken state: tasks or features");
    require((tasks == 0 ? sums.empty() : sums.size() % tasks == 0 && index_t(sums.size() / tasks) == features) &&
                (total.empty() || total.size() == sums.size()),
            "broken state: sums");
    require(shape[2] >= 0 && shape[3] >= 0 && shape[6] >= 0 && shape[6] <= 4 * tasks + 64, "broken state");
    DualAveraging fresh;
    fresh.settings = model.settings;
    fresh.l1_default = model.l1_default;
    fresh.resize(features, tasks);
    for (index_t q = 0; q < tasks; ++q) {  // a fresh model keeps them task after task
        std::copy_n(sums.data() + q * features, features, fresh.sums.data() + q * fresh.width);
        if (fresh.settings.average && !total.empty())
            std::copy_n(total.data() + q * features, features, fresh.total.data() + q * fresh.width);
    }
    fresh.set_layout(shape[4] != 0);
    if (!fresh.task_major && fresh.capacity < shape[6]) {  // the room that was there decides how sums are rounded
        auto widen = [&](const Cells &cells) {
            Cells wide(features * shape[6], 0.0);
            for (index_t j = 0; j < features; ++j)
                std::copy_n(cells.data() + j * fresh.capacity, tasks, wide.data() + j * shape[6]);
            return wide;
        };
        if (fresh.settings.average) fresh.total = widen(fresh.total);
        fresh.sums = widen(fresh.sums);
        fresh.capacity = shape[6];
        fresh.inverse.resize(std::max<index_t>(fresh.inverse.size(), fresh.capacity), 0.0);
    }
    fresh.steps = shape[2];
    fresh.rows = shape[3];
    const auto sizes = from_state<double>(d, "sizes"), l1 = from_state<double>(d, "l1");
    require(index_t(sizes.size()) == features && index_t(l1.size()) == features, "broken state: features");
    std::copy(sizes.begin(), sizes.end(), fresh.sizes.begin());
    std::copy(l1.begin(), l1.end(), fresh.l1.begin());
    for (double r : l1) fresh.l1_uniform = fresh.l1_uniform && r == fresh.l1_default;
    fresh.weight = from_state<double>(d, "weight");
    fresh.offset_sums = from_state<double>(d, "offset_sums");
    fresh.offset_total = from_state<double>(d, "offset_total");
    require(index_t(fresh.weight.size()) == tasks && index_t(fresh.offset_sums.size()) == tasks && index_t(fresh.offset_total.size()) == tasks,
            "broken state: tasks");
    fresh.sizes_ready = shape[5] != 0;
    if (!fresh.global())
        for (index_t q = 0; q < tasks; ++q) fresh.inverse[q] = fresh.weight[q] > 0.0 ? 1.0 / fresh.weight[q] : 0.0;
    fresh.round_task = from_state<index_t>(d, "round_task");
    fresh.round_start = from_state<index_t>(d, "round_start");
    fresh.round_index = from_state<index_t>(d, "round_index");
    fresh.round_gradient = from_state<double>(d, "round_gradient");
    fresh.round_value = from_state<double>(d, "round_value");
    require(fresh.round_task.size() == fresh.round_start.size() &&
                fresh.round_task.size() == fresh.round_gradient.size() &&
                fresh.round_index.size() == fresh.round_value.size(),
            "broken state: open round");
    for (index_t q : fresh.round_task) {
        require(q >= 0 && q < tasks, "broken state: open round");
        fresh.in_round[q] = 1;
    }
    for (index_t j : fresh.round_index) require(j >= 0 && j < features, "broken state: open round");
    for (index_t k : fresh.round_start)
        require(k >= 0 && k <= index_t(fresh.round_index.size()), "broken state: open round");
    require(std::is_sorted(fresh.round_start.begin(), fresh.round_start.end()), "broken state: open round");
    model = fresh;
}

}  // namespace

void bind_online(nb::module_ &m) {
    nb::class_<DualAveraging>(m, "DualAveraging")
        .def(nb::init<>())
        .def("configure", &configure, "penalty"_a, "rule"_a, "loss"_a, "alpha"_a, "gamma"_a, "ridge"_a, "enhanced"_a,
             "intercept"_a, "average"_a, "l1"_a)
        .def("set_l1", &set_l1, "values"_a.noconvert())
        .def("resize", &DualAveraging::resize, "features"_a, "tasks"_a)
        .def("flip", &DualAveraging::flip, "task"_a)
        .def("close_round", &DualAveraging::close_round)
        .def_ro("features", &DualAveraging::features)
        .def_ro("tasks", &DualAveraging::tasks)
        .def_ro("steps", &DualAveraging::steps)
        .def_ro("rows", &DualAveraging::rows)
        .def("learn_dense", &learn_dense, "x"_a.noconvert(), "y"_a.noconvert(), "task"_a.noconvert(),
             "weight"_a.none().noconvert())
        .def("learn_sparse", &learn_sparse<std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
             "indptr"_a.noconvert(), "y"_a.noconvert(), "task"_a.noconvert(), "weight"_a.none().noconvert())
        .def("learn_sparse", &learn_sparse<std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
             "indptr"_a.noconvert(), "y"_a.noconvert(), "task"_a.noconvert(), "weight"_a.none().noconvert())
        .def("learn_plain_dense", &learn_plain_dense, "x"_a.noconvert(), "y"_a.noconvert(), "label"_a.noconvert(),
             "table"_a.noconvert())
        .def("learn_plain_sparse", &learn_plain_sparse<std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
             "indptr"_a.noconvert(), "y"_a.noconvert(), "label"_a.noconvert(), "table"_a.noconvert())
        .def("learn_plain_sparse", &learn_plain_sparse<std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
             "indptr"_a.noconvert(), "y"_a.noconvert(), "label"_a.noconvert(), "table"_a.noconvert())
        .def("learn_array", &learn_array, "x"_a.noconvert(), "y"_a, "task"_a, "weight"_a)
        .def("learn_dict", &learn_dict, "x"_a, "vocabulary"_a, "y"_a, "task"_a, "weight"_a)
        .def("score_array", &score_array, "x"_a.noconvert(), "task"_a)
        .def("score_dict", &score_dict, "x"_a, "vocabulary"_a, "task"_a)
        .def("score_sparse", &score_sparse, "value"_a.noconvert(), "index"_a.noconvert(), "task"_a)
        .def("coefficients", &coefficients, "out"_a.noconvert())
        .def("intercepts", &intercepts, "out"_a.noconvert())
        .def("state", &state)
        .def("restore", &restore, "state"_a);
}

}  // namespace tasksieve
