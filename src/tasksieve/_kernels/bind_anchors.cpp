#include "anchors.hpp"
#include "arrays.hpp"

namespace tasksieve {

namespace {

void py_moment_bounds(Rows<double> moments, Rows<double> first, Vector<double> longest, Vector<double> group,
                      double alpha, double beta, double first_unit, double radius, double rounding,
                      OutVector<double> upper) {
    const index_t count = length(upper);
    require(shaped(moments, count, 3), "moments: three a feature");
    require(shaped(first, count, 3), "first: three a feature");
    require(length(longest) == count && length(group) == count, "one entry a feature");
    nb::gil_scoped_release release;
    moment_bounds(moments.data(), first.data(), longest.data(), group.data(), count, alpha, beta, first_unit, radius,
                  rounding, upper.data());
}

void py_express(Rows<double> vectors, Cube<double> gram, Vector<double> vector, Indices offsets, double of_parts,
                double of_vector, double of_largest, OutRows<double> coef, OutVector<double> rest,
                OutVector<double> errors, OutVector<double> remainder) {
    const index_t count = vectors.shape(0), tasks = check_offsets(offsets, length(vector));
    require(index_t(vectors.shape(1)) == length(vector), "vectors must be as long as the vector");
    require(shaped(gram, tasks, count, count), "gram must be tasks x anchors x anchors");
    require(shaped(coef, count, tasks) && length(rest) == length(vector), "coef or rest has the wrong size");
    require(length(errors) == tasks && length(remainder) == tasks, "one error and remainder a task");
    const Expressed is{vectors.data(), gram.data(), count, offsets.data(), tasks, of_parts, of_vector, of_largest,
                       coef.data(), rest.data(), errors.data(), remainder.data()};
    nb::gil_scoped_release release;
    express(is, vector.data());
}

void py_row_inner_products(Rows<float> a, Rows<float> b, int threads, OutVector<float> out) {
    const index_t count = a.shape(0), tasks = a.shape(1);
    require(shaped(b, count, tasks) && length(out) == count, "two arrays of one shape, and one entry a row");
    nb::gil_scoped_release release;
    row_inner_products(a.data(), b.data(), count, tasks, threads, out.data());
}

void py_joint_bounds(std::vector<Vector<float>> inner, Vector<double> coef, Rows<float> norms, Vector<double> longest,
                     Vector<double> remainder, double radius, Vector<double> group, double rounding, double smallest,
                     int threads, OutVector<double> estimate, OutVector<double> upper) {
    const index_t features = norms.shape(0), tasks = norms.shape(1), count = length(coef);
    require(length(inner) == count * (count + 1) / 2, "inner products of all pairs of anchors");
    std::vector<const float *> pointers;
    for (const auto &one : inner) {
        require(length(one) == features, "one inner product a feature");
        pointers.push_back(one.data());
    }
    require(length(remainder) == tasks, "one remainder a task");
    require(length(longest) == features && length(group) == features, "one entry a feature");
    require(length(estimate) == features && length(upper) == features, "one entry a feature");
    const Joint is{pointers.data(), count, tasks, coef.data(), norms.data(), longest.data(), remainder.data(), radius,
                   group.data(), rounding, smallest, estimate.data(), upper.data()};
    nb::gil_scoped_release release;
    joint_bounds(is, features, threads);
}

double py_largest_magnitude(Rows<double> values, int threads) {
    nb::gil_scoped_release release;
    return largest_magnitude(values.data(), length(values), threads);
}

void py_store_single(Rows<double> values, double factor, float least, int threads, OutRows<float> out) {
    require(shaped(out, values.shape(0), values.shape(1)), "out has the wrong shape");
    nb::gil_scoped_release release;
    store_single(values.data(), length(values), factor, least, threads, out.data());
}

void py_anchored_ratios(std::vector<Rows<float>> anchors, Rows<double> coef, Rows<float> norms,
                        Vector<double> remainder, double shared_remainder, double radius, Vector<double> group,
                        Maybe<Vector<double>> l1, bool positive, int threads, OutVector<double> estimate,
                        OutVector<double> upper, Maybe<Indices> chosen, Maybe<OutRows<double>> moments) {
    const index_t features = norms.shape(0), tasks = coef.shape(1);
    std::vector<const float *> pointers;
    for (const auto &anchor : anchors) {
        require(shaped(anchor, features, tasks), "anchor shape");
        pointers.push_back(anchor.data());
    }
    require(coef.shape(0) == anchors.size(), "one row of coef an anchor");
    const bool one_norm = norms.shape(1) == 1;
    require(one_norm || index_t(norms.shape(1)) == tasks, "norms shape");
    require(one_norm || length(remainder) == tasks, "one remainder a task");
    require(length(group) == features && (!l1 || length(*l1) == features), "one entry a feature");
    const index_t count = chosen ? length(*chosen) : features;
    if (chosen) check_indices(*chosen, features);
    require(length(estimate) == count && length(upper) == count, "one entry a feature");
    require(!moments || shaped(*moments, count, 3), "moments: three a feature");
    const Anchored is{pointers.data(), length(pointers), tasks, coef.data(), norms.data(), one_norm, remainder.data(),
                      shared_remainder, radius, group.data(), data_or_null(l1), positive, data_or_null(chosen),
                      estimate.data(), upper.data(), data_or_null(moments)};
    nb::gil_scoped_release release;
    anchored_ratios(is, count, threads);
}

}  // namespace

void bind_anchors(nb::module_ &m) {
    m.def("anchored_ratios", &py_anchored_ratios, array("anchors"), array("coef"), array("norms"), array("remainder"),
          "shared_remainder"_a, "radius"_a, array("group"), maybe("l1"), "positive"_a, "threads"_a, array("estimate"),
          array("upper"), array("chosen") = nb::none(), array("moments") = nb::none());
    m.def("express", &py_express, array("vectors"), array("gram"), array("vector"), array("offsets"), "of_parts"_a,
          "of_vector"_a, "of_largest"_a, array("coef"), array("rest"), array("errors"), array("remainder"));
    m.def("moment_bounds", &py_moment_bounds, array("moments"), array("first"), array("longest"), array("group"),
          "alpha"_a, "beta"_a, "first_unit"_a, "radius"_a, "rounding"_a, array("upper"));
    m.def("row_inner_products", &py_row_inner_products, array("a"), array("b"), "threads"_a, array("out"));
    m.def("joint_bounds", &py_joint_bounds, array("inner"), array("coef"), array("norms"), array("longest"),
          array("remainder"), "radius"_a, array("group"), "rounding"_a, "smallest"_a, "threads"_a, array("estimate"),
          array("upper"));
    m.def("largest_magnitude", &py_largest_magnitude, array("values"), "threads"_a);
    m.def("store_single", &py_store_single, array("values"), "factor"_a, "least"_a, "threads"_a, array("out"));
}

}  // namespace tasksieve
