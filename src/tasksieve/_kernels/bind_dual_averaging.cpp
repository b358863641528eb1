#include <limits>

#include "arrays.hpp"
#include "dual_averaging.hpp"

namespace tasksieve {

namespace {

using Weights = Maybe<Vector<double>>;

template <class T>
nb::object to_array(std::vector<T> values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

void check_task(const DualAveraging &model, index_t task) {
    require(task >= 0 && task < model.tasks, "task out of range");
}

void check_rows(const DualAveraging &model, index_t count, const Vector<double> &y, const Indices &task,
                const Weights &weight) {
    require(length(y) == count && length(task) == count, "one y and one task a row");
    require(!weight || length(*weight) == count, "one weight a row");
    check_indices(task, model.tasks, "task out of range");
}

// A NaN for gamma: "auto". A NaN for l1 leaves it as it is: `set_l1` then says it, feature by feature.
void configure(DualAveraging &model, int penalty, int rule, int loss, double alpha, double gamma, double ridge,
               double enhanced, bool intercept, bool average, double l1) {
    const OnlineSettings old = model.settings;
    const bool automatic = std::isnan(gamma);
    if (automatic) gamma = 0.0;
    model.settings = {OnlinePenalty(penalty), MissingRule(rule), OnlineLoss(loss), alpha,    gamma, ridge,
                      enhanced,               intercept,         average,          automatic};
    if (old.penalty != model.settings.penalty || old.rule != model.settings.rule || old.alpha != alpha ||
        old.gamma != gamma || old.enhanced != enhanced || old.automatic != automatic)
        model.forget_norms();
    if (automatic && !old.automatic && model.rows > 0) model.automatic.start(old.gamma);
    if (!std::isnan(l1) && l1 != model.l1_default) {
        model.l1_default = l1;
        std::fill(model.l1.begin(), model.l1.end(), l1);
        model.l1_uniform = true;
        model.forget_norms();
    }
    if (average) model.total.resize(model.sums.size(), 0.0);
}

void set_l1(DualAveraging &model, Vector<double> values) {
    require(length(values) == model.features, "one l1 a feature");
    if (std::equal(values.data(), values.data() + values.size(), model.l1.begin())) return;
    std::copy_n(values.data(), values.size(), model.l1.begin());
    model.l1_uniform = false;
    model.forget_norms();
}

// Each learn_... returns the number of rows learned: fewer than given if one cannot be learned.
index_t learn_dense(DualAveraging &model, Rows<double> x, Vector<double> y, Indices task, Weights weight) {
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
index_t learn_rows(DualAveraging &model, const Compressed<double, I> &rows, const Vector<double> &y,
                   const Indices &task, const Weights &weight) {
    check_rows(model, rows.lines, y, task, weight);
    nb::gil_scoped_release release;
    model.arrange_for_sparse();
    return model.learn_rows(rows, y.data(), task.data(), data_or_null(weight));
}

template <class I>
index_t learn_sparse(DualAveraging &model, Vector<double> data, Vector<I> indices, Vector<I> indptr,
                     Vector<double> y, Indices task, Weights weight) {
    return learn_rows(model, compressed(data, indices, indptr, model.features), y, task, weight);
}

// --- chunks in the plainest form ---------------------------------------------------------------------------------

// The codes of integer labels, from a table (-1: none); false if one has no code.
bool read_codes(const Indices &label, const Indices &table, std::vector<index_t> &codes) {
    codes.resize(label.size());
    bool all = true;
    for (size_t i = 0; i < label.size(); ++i) {
        const bool inside = size_t(label.data()[i]) < table.size();
        codes[i] = inside ? table.data()[label.data()[i]] : -1;
        all = all && codes[i] >= 0;
    }
    return all;
}

// Each learns like learn_..., or returns -1 without having done anything where an entry is not finite, an index out of
// range, or a label has no code: the caller then looks closer.
index_t learn_plain_dense(DualAveraging &model, Rows<double> x, Vector<double> y, Indices label, Indices table) {
    static thread_local std::vector<index_t> codes;
    if (x.shape(0) != y.size() || !all_finite(x.data(), length(x)) || !all_finite(y.data(), length(y)) ||
        !read_codes(label, table, codes))
        return -1;
    return learn_dense(model, x, y, Indices(codes.data(), {codes.size()}), {});
}

template <class I>
index_t learn_plain_sparse(DualAveraging &model, Vector<double> data, Vector<I> indices, Vector<I> indptr,
                           Vector<double> y, Indices label, Indices table) {
    static thread_local std::vector<index_t> codes;
    if (indptr.size() != y.size() + 1 || !consistent(data, indices, indptr) ||
        !all_inside(indices.data(), length(indices), model.features) || !all_finite(data.data(), length(data)) ||
        !all_finite(y.data(), length(y)) || !read_codes(label, table, codes))
        return -1;
    const Compressed<double, I> rows{data.data(), indices.data(), indptr.data(), length(y)};
    return learn_rows(model, rows, y, Indices(codes.data(), {codes.size()}), {});
}

// --- one row a call ---------------------------------------------------------------------------------------------

struct Buffers {
    std::vector<std::int64_t> index;
    std::vector<double> value;

    Buffers() { index.reserve(8); }  // a row without entries is sparse, too: its index is never nullptr
};
thread_local Buffers buffers;

void check_finite(const double *values, index_t count) {
    if (!all_finite(values, count)) throw nb::value_error("x contains NaN or infinity");
}

bool learn_array(DualAveraging &model, Vector<double> x, double y, index_t task, double weight) {
    if (index_t(x.size()) != model.features) throw nb::value_error("x has the wrong number of features");
    check_task(model, task);
    check_finite(x.data(), model.features);
    model.set_layout(true);
    return model.learn(OnlineRow<std::int32_t>{x.data(), nullptr, model.features}, y, task, weight);
}

// Reads {name: value} into the buffers. Names that are not in the vocabulary get the next indices, and are returned.
std::vector<PyObject *> read_dict(const DualAveraging &model, nb::dict x, nb::dict vocabulary) {
    buffers.index.clear();
    buffers.value.clear();
    std::vector<PyObject *> fresh;
    PyObject *key, *item;
    Py_ssize_t place = 0;
    while (PyDict_Next(x.ptr(), &place, &key, &item)) {
        const double value = PyFloat_AsDouble(item);
        if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
        if (!std::isfinite(value)) throw nb::value_error("x contains NaN or infinity");
        PyObject *found = PyDict_GetItemWithError(vocabulary.ptr(), key);
        if (!found && PyErr_Occurred()) throw nb::python_error();
        index_t index = model.features + index_t(fresh.size());
        if (found) {
            index = PyLong_AsLongLong(found);
            if (index < 0 || index >= model.features) throw nb::value_error("vocabulary index out of range");
        } else {
            fresh.push_back(key);
        }
        buffers.index.push_back(index);
        buffers.value.push_back(value);
    }
    return fresh;
}

// The row in the buffers without features that the model does not have.
OnlineRow<std::int64_t> known_part(const DualAveraging &model, Buffers &known) {
    known.index.clear();
    known.value.clear();
    for (size_t k = 0; k < buffers.index.size(); ++k) {
        if (buffers.index[k] >= model.features) continue;
        known.index.push_back(buffers.index[k]);
        known.value.push_back(buffers.value[k]);
    }
    return {known.value.data(), known.index.data(), length(known.index)};
}

// Unknown names become features, if the row can be learned.
bool learn_dict(DualAveraging &model, nb::dict x, nb::dict vocabulary, double y, index_t task, double weight) {
    const std::vector<PyObject *> fresh = read_dict(model, x, vocabulary);
    check_task(model, task);
    model.set_layout(false);
    if (!fresh.empty()) {
        Buffers known;
        double size = 0.0;
        for (double value : buffers.value) size += value * value;
        if (!model.accepts(known_part(model, known), size, y, task, weight)) return false;
        for (size_t k = 0; k < fresh.size(); ++k) {
            nb::object number = nb::int_(model.features + index_t(k));
            if (PyDict_SetItem(vocabulary.ptr(), fresh[k], number.ptr())) throw nb::python_error();
        }
        model.resize(model.features + index_t(fresh.size()), model.tasks);
    }
    const OnlineRow<std::int64_t> row{buffers.value.data(), buffers.index.data(), length(buffers.index)};
    return model.learn(row, y, task, weight);
}

template <class Row>
double shown_score(DualAveraging &model, const Row &row, index_t task) {
    return model.round_task.empty() ? model.score(row, task) : model.closed().score(row, task);
}

double score_array(DualAveraging &model, Vector<double> x, index_t task) {
    if (index_t(x.size()) != model.features) throw nb::value_error("x has the wrong number of features");
    check_task(model, task);
    check_finite(x.data(), model.features);
    model.set_layout(true);
    return shown_score(model, OnlineRow<std::int32_t>{x.data(), nullptr, model.features}, task);
}

double score_dict(DualAveraging &model, nb::dict x, nb::dict vocabulary, index_t task) {
    check_task(model, task);
    const bool all_known = read_dict(model, x, vocabulary).empty();
    model.set_layout(false);
    if (all_known)
        return shown_score(
            model, OnlineRow<std::int64_t>{buffers.value.data(), buffers.index.data(), length(buffers.index)}, task);
    Buffers known;
    return shown_score(model, known_part(model, known), task);
}

double score_sparse(DualAveraging &model, Vector<double> value, Indices index, index_t task) {
    check_task(model, task);
    require(value.size() == index.size(), "one value an index");
    check_indices(index, model.features, "feature out of range");
    model.arrange_for_sparse();
    return shown_score(model, OnlineRow<std::int64_t>{value.data(), index.data(), length(index)}, task);
}

void flip(DualAveraging &model, index_t task) {
    check_task(model, task);
    model.flip(task);
}

// --- what it has learned ----------------------------------------------------------------------------------------

void coefficients(const DualAveraging &model, OutRows<double> out) {
    require(shaped(out, model.tasks, model.features), "out: tasks x features");
    nb::gil_scoped_release release;
    model.weights(out.data());
}

void intercepts(const DualAveraging &model, OutVector<double> out) {
    require(length(out) == model.tasks, "out: one entry a task");
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

// What is kept as it is.
template <class Model, class Each>
void each_field(Model &model, const Each &each) {
    each("weight", model.weight);
    each("offset_sums", model.offset_sums);
    each("offset_total", model.offset_total);
    each("round_task", model.round_task);
    each("round_start", model.round_start);
    each("round_index", model.round_index);
    each("round_gradient", model.round_gradient);
    each("round_value", model.round_value);
    each("seen_weight", model.foresight.weight);
    each("seen_loss", model.foresight.loss);
    each("seen_hits", model.foresight.hits);
    each("seen_mean", model.foresight.mean);
    each("seen_spread", model.foresight.spread);
    each("seen_curve", model.foresight.curve);
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
    const AutoGamma &own = model.automatic;
    d["automatic"] = to_array(std::vector<double>{own.size.sum, own.size.rows, own.crowd.sum, own.crowd.rows, own.used,
                                                  own.next, own.offset_used, own.offset_next, model.largest});
    each_field(model, [&](const char *name, const auto &field) { d[name] = to_array(field); });
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
    const auto sizes = from_state<double>(d, "sizes"), l1 = from_state<double>(d, "l1");
    DualAveraging fresh;
    each_field(fresh, [&](const char *name, auto &field) {
        field = from_state<typename std::decay_t<decltype(field)>::value_type>(d, name);
    });
    require(length(sizes) == features && length(l1) == features, "broken state: features");
    require(length(fresh.weight) == tasks && length(fresh.offset_sums) == tasks && length(fresh.offset_total) == tasks,
            "broken state: tasks");
    for (const auto *each : {&fresh.foresight.weight, &fresh.foresight.loss, &fresh.foresight.hits, &fresh.foresight.mean,
                             &fresh.foresight.spread})
        require(length(*each) == tasks, "broken state: tasks");
    const auto automatic = from_state<double>(d, "automatic");
    require(automatic.size() == 9, "broken state: gamma");
    fresh.automatic = {{automatic[0], automatic[1]}, {automatic[2], automatic[3]}, automatic[4],
                       automatic[5],                 automatic[6],                 automatic[7]};
    fresh.largest = automatic[8];
    require((tasks == 0 ? sums.empty() : sums.size() % tasks == 0 && index_t(sums.size() / tasks) == features) &&
                (total.empty() || total.size() == sums.size()),
            "broken state: sums");
    require(shape[2] >= 0 && shape[3] >= 0, "broken state: steps");
    require(shape[6] >= 0 && shape[6] <= tasks + tasks / 2 + 8 && shape[6] % 4 == 0, "broken state: room");  // whole vectors
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
    std::copy(sizes.begin(), sizes.end(), fresh.sizes.begin());
    std::copy(l1.begin(), l1.end(), fresh.l1.begin());
    for (double r : l1) fresh.l1_uniform = fresh.l1_uniform && r == fresh.l1_default;
    fresh.sizes_ready = shape[5] != 0;
    if (!fresh.global())
        for (index_t q = 0; q < tasks; ++q) fresh.inverse[q] = fresh.weight[q] > 0.0 ? 1.0 / fresh.weight[q] : 0.0;
    require(fresh.round_task.size() == fresh.round_start.size() &&
                fresh.round_task.size() == fresh.round_gradient.size() &&
                fresh.round_index.size() == fresh.round_value.size(),
            "broken state: open round");
    const auto within = [](const std::vector<index_t> &values, index_t end) {
        require(all_inside(values.data(), length(values), end), "broken state: open round");
    };
    within(fresh.round_task, tasks);
    within(fresh.round_index, features);
    within(fresh.round_start, length(fresh.round_index) + 1);
    require(std::is_sorted(fresh.round_start.begin(), fresh.round_start.end()), "broken state: open round");
    for (index_t q : fresh.round_task) fresh.in_round[q] = 1;
    model = fresh;
}

template <class I>
void bind_sparse(nb::class_<DualAveraging> &learner) {
    learner
        .def("learn_sparse", &learn_sparse<I>, array("data"), array("indices"), array("indptr"), array("y"),
             array("task"), maybe("weight"))
        .def("learn_plain_sparse", &learn_plain_sparse<I>, array("data"), array("indices"), array("indptr"),
             array("y"), array("label"), array("table"));
}

}  // namespace

void bind_dual_averaging(nb::module_ &m) {
    nb::class_<DualAveraging> learner(m, "DualAveraging");
    learner.def(nb::init<>())
        .def("configure", &configure, "penalty"_a, "rule"_a, "loss"_a, "alpha"_a, "gamma"_a, "ridge"_a, "enhanced"_a,
             "intercept"_a, "average"_a, "l1"_a)
        .def("set_l1", &set_l1, array("values"))
        .def("resize", &DualAveraging::resize, "features"_a, "tasks"_a)
        .def("flip", &flip, "task"_a)
        .def("close_round", &DualAveraging::close_round)
        .def_ro("features", &DualAveraging::features)
        .def_ro("tasks", &DualAveraging::tasks)
        .def_ro("steps", &DualAveraging::steps)
        .def_ro("rows", &DualAveraging::rows)
        .def_prop_ro("gamma", [](const DualAveraging &model) { return model.automatic.next; })
        .def("learn_dense", &learn_dense, array("x"), array("y"), array("task"), maybe("weight"))
        .def("learn_plain_dense", &learn_plain_dense, array("x"), array("y"), array("label"), array("table"))
        .def("learn_array", &learn_array, array("x"), "y"_a, "task"_a, "weight"_a)
        .def("learn_dict", &learn_dict, "x"_a, "vocabulary"_a, "y"_a, "task"_a, "weight"_a)
        .def("score_array", &score_array, array("x"), "task"_a)
        .def("score_dict", &score_dict, "x"_a, "vocabulary"_a, "task"_a)
        .def("score_sparse", &score_sparse, array("value"), array("index"), "task"_a)
        .def("coefficients", &coefficients, array("out"))
        .def("intercepts", &intercepts, array("out"))
        .def("state", &state)
        .def("restore", &restore, "state"_a);
    bind_sparse<std::int32_t>(learner);
    bind_sparse<std::int64_t>(learner);
}

}  // namespace tasksieve
