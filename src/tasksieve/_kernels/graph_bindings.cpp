// Bindings of the graph models' kernels: shapes are checked here once.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <stdexcept>
#include <tuple>

#include "dual_coordinate.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tasksieve {
namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char *message) {
    if (!condition) throw std::invalid_argument(message);
}

struct Rows {
    AnyRows any;
    index_t rows() const {
        return std::visit([](const auto &r) { return r.rows; }, any);
    }
    index_t features() const {
        return std::visit([](const auto &r) { return r.features; }, any);
    }
    bool strings() const { return std::holds_alternative<StringRows>(any); }
    bool packed() const {  // a copy without empty blocks
        return std::holds_alternative<BlockRows<double>>(any) || std::holds_alternative<BlockRows<float>>(any) ||
               std::holds_alternative<BlockRows<std::int8_t>>(any) ||
               std::holds_alternative<BlockRows<std::uint8_t>>(any);
    }
};

template <class T>
Rows dense_rows(Matrix<T> x, int threads) {
    DenseRows<T> dense;
    dense.x = x.data();
    dense.rows = x.shape(0);
    dense.features = x.shape(1);
    nb::gil_scoped_release release;
    return {packed_if_sparse(dense, threads)};
}

template <class T, class I>
Rows sparse_rows(Vector<T> data, Vector<I> indices, Vector<I> indptr, index_t features) {
    SparseRows<T, I> rows;
    rows.data = data.data();
    rows.indices = indices.data();
    rows.indptr = indptr.data();
    rows.rows = static_cast<index_t>(indptr.size()) - 1;
    rows.features = features;
    require(rows.rows >= 0 && data.size() == indices.size(), "inconsistent sparse rows");
    require(indptr.data()[0] == 0 && static_cast<index_t>(indptr.data()[rows.rows]) == static_cast<index_t>(data.size()),
            "indptr must run from 0 to the number of entries");
    for (index_t r = 0; r < rows.rows; ++r) require(indptr.data()[r] <= indptr.data()[r + 1], "indptr decreases");
    I least = 0, most = 0;  // a loop without a way out is vectorised
    for (size_t k = 0; k < indices.size(); ++k) {
        least = std::min(least, indices.data()[k]);
        most = std::max(most, indices.data()[k]);
    }
    require(least >= 0 && (indices.size() == 0 || static_cast<index_t>(most) < features), "column index out of range");
    return {rows};
}

Rows string_rows(Matrix<std::uint8_t> text, Vector<std::uint8_t> letters, int bits, int direct,
                 Vector<index_t> offset, Vector<float> weight, index_t features) {
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
    require(direct == rows.degree ? offset.data()[direct] <= features : offset.data()[direct] < features,
            "no room for hashed degrees");
    for (int b = 0; b < 256; ++b)
        require(letters.data()[b] == 255 || letters.data()[b] < (1 << bits), "letter code out of range");
    rows.prepare();
    return {rows};
}

GraphProblem problem_of(const Rows &rows, int loss, double epsilon, double bias, const Vector<index_t> &offsets,
                        const std::optional<Vector<index_t>> &row_of, const Vector<double> &y, const Vector<double> &c,
                        const Matrix<double> &m) {
    GraphProblem p;
    p.loss = loss;
    p.epsilon = epsilon;
    p.bias = bias;
    p.tasks = static_cast<index_t>(offsets.size()) - 1;
    p.width = rows.features() + (bias > 0 ? 1 : 0);
    p.offsets = offsets.data();
    require(p.tasks >= 1 && p.offsets[0] == 0, "offsets must start at 0");
    for (index_t t = 0; t < p.tasks; ++t) require(p.offsets[t] <= p.offsets[t + 1], "offsets must not decrease");
    p.samples = p.offsets[p.tasks];
    require(loss >= HINGE && loss <= SQUARED_EPSILON, "unknown loss");
    require(index_t(y.size()) == p.samples && index_t(c.size()) == p.samples, "one y and c a sample");
    require(index_t(m.shape(0)) == p.tasks && index_t(m.shape(1)) == p.tasks, "m is tasks x tasks");
    if (row_of) {
        require(index_t(row_of->size()) == p.samples, "one row a sample");
        for (index_t i = 0; i < p.samples; ++i)
            require(row_of->data()[i] >= 0 && row_of->data()[i] < rows.rows(), "row out of range");
        p.row_of = row_of->data();
    } else {
        require(p.samples <= rows.rows(), "more samples than rows");
    }
    p.y = y.data();
    p.c = c.data();
    p.m = m.data();
    return p;
}

// The problem is checked once and kept; the arrays are kept alive by the Python object.
struct Problem {
    Rows rows;
    GraphProblem p;
};

template <class W>
std::tuple<index_t, index_t, double, double, double> py_descent(const Problem &problem,
                                                                std::optional<Vector<double>> squares,
                                                                OutVector<double> beta, OutMatrix<W> w,
                                                                OutVector<index_t> active, OutVector<index_t> counts,
                                                                index_t max_epochs, double target, double lowest,
                                                                double highest, std::uint64_t seed) {
    const GraphProblem &p = problem.p;
    require(problem.rows.strings() == std::is_same_v<W, float>, "strings take float32 tables, other rows float64");
    require(!squares || index_t(squares->size()) == problem.rows.rows(), "one square a row");
    require(index_t(beta.size()) == p.samples && index_t(active.size()) == p.samples &&
                index_t(counts.size()) == p.tasks,
            "beta, active, counts");
    require(index_t(w.shape(0)) == p.tasks && index_t(w.shape(1)) == p.width, "w is tasks x width");
    for (index_t t = 0; t < p.tasks; ++t) {
        require(counts.data()[t] >= 0 && counts.data()[t] <= p.offsets[t + 1] - p.offsets[t], "counts");
        for (index_t k = p.offsets[t]; k < p.offsets[t] + counts.data()[t]; ++k) {
            const index_t i = active.data()[k];
            require(i >= p.offsets[t] && i < p.offsets[t + 1] && p.c[i] > 0, "active");
        }
    }
    nb::gil_scoped_release release;
    const DescentReport report = dual_descent(problem.rows.any, p, squares ? squares->data() : nullptr, beta.data(),
                                              w.data(), active.data(), counts.data(), max_epochs, target, lowest, highest, seed);
    return {report.epochs, report.visits, report.estimate, report.lowest, report.highest};
}

template <class W>
void py_pass(const Problem &problem, std::optional<Matrix<W>> w, std::optional<Vector<double>> beta, int threads,
             std::optional<OutVector<double>> scores, std::optional<OutMatrix<double>> v) {
    const GraphProblem &p = problem.p;
    require(problem.rows.strings() == std::is_same_v<W, float>, "strings take float32 tables, other rows float64");
    require(w.has_value() == scores.has_value() && beta.has_value() == v.has_value(), "w with scores, beta with v");
    require(!w || (index_t(w->shape(0)) == p.tasks && index_t(w->shape(1)) == p.width), "w is tasks x width");
    require(!v || (index_t(v->shape(0)) == p.tasks && index_t(v->shape(1)) == p.width), "v is tasks x width");
    require(!beta || index_t(beta->size()) == p.samples, "one beta a sample");
    require(!scores || index_t(scores->size()) == p.samples, "one score a sample");
    nb::gil_scoped_release release;
    graph_pass<W>(problem.rows.any, p, w ? w->data() : nullptr, beta ? beta->data() : nullptr, threads,
                  scores ? scores->data() : nullptr, v ? v->data() : nullptr);
}

std::tuple<double, double> py_fenchel(const Problem &problem, Vector<double> scores, Vector<double> beta) {
    const index_t n = problem.p.samples;
    require(index_t(scores.size()) == n && index_t(beta.size()) == n, "sizes");
    nb::gil_scoped_release release;
    const LossSums sums = fenchel_sums(problem.p, scores.data(), beta.data());
    return {sums.loss, sums.terms};
}

template <class W>
std::tuple<double, double> py_rebuild(const Problem &problem, Vector<double> beta, int threads, OutMatrix<W> w) {
    const GraphProblem &p = problem.p;
    require(problem.rows.strings() == std::is_same_v<W, float>, "strings take float32 tables, other rows float64");
    require(index_t(beta.size()) == p.samples, "one beta a sample");
    require(index_t(w.shape(0)) == p.tasks && index_t(w.shape(1)) == p.width, "w is tasks x width");
    nb::gil_scoped_release release;
    const TableSquares squares = rebuild_table(problem.rows.any, p, beta.data(), threads, w.data());
    return {squares.v, squares.w};
}

std::tuple<double, double> py_smoothed_loss(const Problem &problem, Vector<double> scores, double mu, int threads,
                                            OutVector<double> beta, OutVector<double> curvature) {
    const index_t n = problem.p.samples;
    require(index_t(scores.size()) == n && index_t(beta.size()) == n && index_t(curvature.size()) == n, "sizes");
    nb::gil_scoped_release release;
    const LossSums sums = smoothed_loss(problem.p, scores.data(), mu, threads, beta.data(), curvature.data());
    return {sums.loss, sums.terms};
}

std::tuple<double, double> py_smoothed_slope(const Problem &problem, Vector<double> scores, Vector<double> direction,
                                             double step, double mu, int threads) {
    const index_t n = problem.p.samples;
    require(index_t(scores.size()) == n && index_t(direction.size()) == n, "sizes");
    nb::gil_scoped_release release;
    double first = 0.0, second = 0.0;
    smoothed_slope(problem.p, scores.data(), direction.data(), step, mu, threads, &first, &second);
    return {first, second};
}

void py_row_squares(const Rows &rows, int threads, OutVector<double> out) {
    require(index_t(out.size()) == rows.rows(), "one entry a row");
    nb::gil_scoped_release release;
    row_squares(rows.any, threads, out.data());
}

void py_count_hashed(const Rows &rows, int threads, OutVector<index_t> counts) {
    require(rows.strings() && index_t(counts.size()) == rows.rows(), "one count a string");
    nb::gil_scoped_release release;
    count_hashed(rows.any, threads, counts.data());
}

void py_hash_rows(const Rows &rows, int threads, Vector<index_t> indptr, OutVector<std::int32_t> indices,
                  OutVector<double> values) {
    require(rows.strings() && index_t(indptr.size()) == rows.rows() + 1, "indptr");
    require(indptr.data()[rows.rows()] == index_t(indices.size()) && indices.size() == values.size(), "sizes");
    nb::gil_scoped_release release;
    hash_rows(rows.any, threads, indptr.data(), indices.data(), values.data());
}

template <class T>
void bind_rows(nb::module_ &m) {
    m.def("dense_rows", &dense_rows<T>, "x"_a.noconvert(), "threads"_a, nb::keep_alive<0, 1>());
    m.def("sparse_rows", &sparse_rows<T, std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
          "indptr"_a.noconvert(), "features"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());
    m.def("sparse_rows", &sparse_rows<T, std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
          "indptr"_a.noconvert(), "features"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());
}

template <class W>
void bind_table(nb::module_ &m) {
    m.def("dual_descent", &py_descent<W>, "problem"_a, "squares"_a.none().noconvert(), "beta"_a.noconvert(),
          "w"_a.noconvert(), "active"_a.noconvert(), "counts"_a.noconvert(), "max_epochs"_a, "target"_a, "lowest"_a,
          "highest"_a, "seed"_a);
    m.def("rebuild_table", &py_rebuild<W>, "problem"_a, "beta"_a.noconvert(), "threads"_a, "w"_a.noconvert());
}

}  // namespace

void bind_graph(nb::module_ &m) {
    nb::class_<Rows>(m, "GraphRows").def_prop_ro("packed", &Rows::packed);
    nb::class_<Problem>(m, "GraphProblem");
    bind_rows<double>(m);
    bind_rows<float>(m);
    bind_rows<std::int8_t>(m);
    bind_rows<std::uint8_t>(m);
    m.def("string_rows", &string_rows, "text"_a.noconvert(), "letters"_a.noconvert(), "bits"_a, "direct"_a,
          "offset"_a.noconvert(), "weight"_a.noconvert(), "features"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
          nb::keep_alive<0, 5>(), nb::keep_alive<0, 6>());
    m.def(
        "graph_problem",
        [](const Rows &rows, int loss, double epsilon, double bias, Vector<index_t> offsets,
           std::optional<Vector<index_t>> row_of, Vector<double> y, Vector<double> c, Matrix<double> matrix) {
            return Problem{rows, problem_of(rows, loss, epsilon, bias, offsets, row_of, y, c, matrix)};
        },
        "rows"_a, "loss"_a, "epsilon"_a, "bias"_a, "offsets"_a.noconvert(), "row_of"_a.none().noconvert(),
        "y"_a.noconvert(), "c"_a.noconvert(), "m"_a.noconvert(), nb::keep_alive<0, 1>(), nb::keep_alive<0, 5>(),
        nb::keep_alive<0, 6>(), nb::keep_alive<0, 7>(), nb::keep_alive<0, 8>(), nb::keep_alive<0, 9>());
    bind_table<double>(m);
    bind_table<float>(m);
    m.def("graph_pass", &py_pass<double>, "problem"_a, "w"_a.none().noconvert(), "beta"_a.none().noconvert(),
          "threads"_a, "scores"_a.none().noconvert(), "v"_a.none().noconvert());
    m.def("graph_pass_single", &py_pass<float>, "problem"_a, "w"_a.none().noconvert(), "beta"_a.none().noconvert(),
          "threads"_a, "scores"_a.none().noconvert(), "v"_a.none().noconvert());
    m.def("fenchel_sums", &py_fenchel, "problem"_a, "scores"_a.noconvert(), "beta"_a.noconvert());
    m.def("smoothed_loss", &py_smoothed_loss, "problem"_a, "scores"_a.noconvert(), "mu"_a, "threads"_a,
          "beta"_a.noconvert(), "curvature"_a.noconvert());
    m.def("smoothed_slope", &py_smoothed_slope, "problem"_a, "scores"_a.noconvert(), "direction"_a.noconvert(),
          "step"_a, "mu"_a, "threads"_a);
    m.def("row_squares", &py_row_squares, "rows"_a, "threads"_a, "out"_a.noconvert());
    m.def("count_hashed", &py_count_hashed, "rows"_a, "threads"_a, "counts"_a.noconvert());
    m.def("hash_rows", &py_hash_rows, "rows"_a, "threads"_a, "indptr"_a.noconvert(), "indices"_a.noconvert(),
          "values"_a.noconvert());
}

}  // namespace tasksieve
