#include "arrays.hpp"
#include "cox.hpp"

namespace tasksieve {

namespace {

RiskRows risk_rows(const Indices &starts, const Vector<double> &weights, const Indices &tie) {
    const index_t blocks = check_offsets(starts, length(weights));
    require(length(tie) == length(weights), "an entry a row in every array");
    return {blocks, starts.data(), weights.data(), tie.data()};
}

void py_risk_factor(Indices starts, Vector<double> weights, Indices tie, Vector<double> mean, Vector<double> near_,
                    Vector<double> far_, Vector<double> residual, OutVector<double> diagonal, OutVector<double> below,
                    OutVector<double> beside, OutVector<double> right) {
    const RiskRows rows = risk_rows(starts, weights, tie);
    const index_t n = length(weights);
    require(length(mean) == n && length(near_) == n && length(far_) == n && length(residual) == n &&
                length(diagonal) == n && length(below) == n && length(beside) == n && length(right) == n,
            "an entry a row in every array");
    nb::gil_scoped_release release;
    risk_factor(rows, mean.data(), near_.data(), far_.data(), residual.data(), diagonal.data(), below.data(),
                beside.data(), right.data());
}

template <class T>
void py_risk_columns(Indices starts, Vector<double> weights, Indices tie, Indices task, Vector<double> diagonal,
                     Vector<double> below, Vector<double> beside, Columns<double> x, Indices columns, Indices source,
                     Indices row, Vector<double> scale, int threads, OutColumns<T> out, OutRows<double> squares) {
    const RiskRows rows = risk_rows(starts, weights, tie);
    const index_t n = length(weights), count = length(columns), tasks = squares.shape(1);
    require(length(task) == rows.blocks && length(diagonal) == n && length(below) == n && length(beside) == n &&
                length(source) == n && length(row) == n && length(scale) == n,
            "an entry a row in every array");
    check_indices(columns, x.shape(1));
    check_indices(task, tasks, "task out of range");
    check_indices(source, x.shape(0), "row out of range");
    check_indices(row, out.shape(0), "row out of range");
    require(length(out) == index_t(out.shape(0)) * count && index_t(squares.shape(0)) == count,
            "out and squares must have a column a column");
    nb::gil_scoped_release release;
    risk_columns(rows, task.data(), tasks, diagonal.data(), below.data(), beside.data(), x.data(), x.shape(0),
                 columns.data(), count, source.data(), row.data(), scale.data(), threads, out.data(), out.shape(0),
                 squares.data());
}

std::tuple<double, double, double> py_divergence_sums(Vector<double> x, Vector<double> y, Maybe<Vector<double>> log_y) {
    const index_t n = length(x);
    require(length(y) == n && (!log_y || length(*log_y) == n), "an entry a row in every array");
    nb::gil_scoped_release release;
    const DivergenceSums sums = divergence_sums(x.data(), y.data(), data_or_null(log_y), n);
    return {sums.value, sums.first, sums.second};
}

}  // namespace

void bind_cox(nb::module_ &m) {
    m.def("risk_factor", &py_risk_factor, array("starts"), array("weights"), array("tie"), array("mean"), array("near"),
          array("far"), array("residual"), array("diagonal"), array("below"), array("beside"), array("right"));
    const auto risk_columns_of = [&](auto function) {
        m.def("risk_columns", function, array("starts"), array("weights"), array("tie"), array("task"),
              array("diagonal"), array("below"), array("beside"), array("x"), array("columns"), array("source"),
              array("row"), array("scale"), "threads"_a, array("out"), array("squares"));
    };
    risk_columns_of(&py_risk_columns<double>);
    risk_columns_of(&py_risk_columns<float>);
    m.def("divergence_sums", &py_divergence_sums, array("x"), array("y"), maybe("log_y"));
}

}  // namespace tasksieve
