#include "passes.hpp"

#include "blas.hpp"
#include "check.hpp"
#include "panel.hpp"

using namespace tasksieve;

namespace {

// c = op(a) op(b) + beta c, as BLAS has it.
void plain_dgemm(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha,
                 const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
                 const int *ldc) {
    for (int j = 0; j < *n; ++j)
        for (int i = 0; i < *m; ++i) {
            double sum = 0.0;
            for (int l = 0; l < *k; ++l)
                sum += (*ta == 'N' ? a[l * *lda + i] : a[i * *lda + l]) * (*tb == 'N' ? b[j * *ldb + l] : b[l * *ldb + j]);
            c[j * *ldc + i] = *alpha * sum + (*beta == 0.0 ? 0.0 : *beta * c[j * *ldc + i]);
        }
}

struct Data {
    index_t rows = 23, features = 600;
    std::vector<index_t> offsets{0, 5, 5, 16, 23}, task_of;
    index_t tasks = 4;
    std::vector<double> r;
    check::Draw draw;

    Data() : r(draw.normals(rows)) {
        for (index_t t = 0; t < tasks; ++t) task_of.insert(task_of.end(), offsets[t + 1] - offsets[t], t);
    }

    template <class T>
    double naive(const std::vector<T> &x, index_t j, index_t t, bool squares, const double *v) const {
        double sum = 0.0;
        for (index_t i = offsets[t]; i < offsets[t + 1]; ++i)
            sum += std::pow(double(x[j * rows + i]), squares ? 2 : 1) * v[i];
        return sum;
    }
};

template <class T>
void compare_dense() {
    Data data;
    const auto x = data.draw.normals<T>(data.rows * data.features, std::is_same_v<T, std::uint8_t> ? 0.0 : 9.0);
    const std::vector<index_t> chosen{599, 3, 3, 0, 77, 12};
    for (bool squares : {false, true})
        for (int threads : {1, 3}) {
            std::vector<double> out(data.features * data.tasks), some(chosen.size() * data.tasks);
            segment_products(x.data(), data.rows, nullptr, data.features, data.r.data(), data.offsets.data(),
                             data.tasks, squares, threads, out.data());
            segment_products(x.data(), data.rows, chosen.data(), chosen.size(), data.r.data(), data.offsets.data(),
                             data.tasks, squares, threads, some.data());
            for (index_t j = 0; j < data.features; ++j)
                for (index_t t = 0; t < data.tasks; ++t)
                    CHECK_CLOSE(out[j * data.tasks + t], data.naive(x, j, t, squares, data.r.data()));
            for (size_t k = 0; k < chosen.size(); ++k)
                for (index_t t = 0; t < data.tasks; ++t)
                    CHECK_CLOSE(some[k * data.tasks + t], data.naive(x, chosen[k], t, squares, data.r.data()));
            // the same rows, stored one after the other
            std::vector<T> by_rows(x.size());
            for (index_t i = 0; i < data.rows; ++i)
                for (index_t j = 0; j < data.features; ++j) by_rows[i * data.features + j] = x[j * data.rows + i];
            std::vector<double> turned(data.tasks * data.features, 0.0);
            const double *const r[] = {data.r.data()};
            const index_t *const homes[] = {data.task_of.data()};
            double *const target[] = {turned.data()};
            row_products(by_rows.data(), data.rows, data.features, r, squares ? 1 : 0, 1, homes, threads, target);
            for (index_t j = 0; j < data.features; ++j)
                for (index_t t = 0; t < data.tasks; ++t)
                    CHECK_CLOSE(turned[t * data.features + j], out[j * data.tasks + t]);
        }
    // several vectors at once: the first with squares
    const index_t vectors = 7;
    const auto drawn = data.draw.normals(vectors * data.rows);
    std::vector<std::vector<double>> found(vectors, std::vector<double>(data.features * data.tasks));
    std::vector<const double *> r;
    std::vector<double *> outs;
    for (index_t k = 0; k < vectors; ++k) {
        r.push_back(drawn.data() + k * data.rows);
        outs.push_back(found[k].data());
    }
    for (index_t count : {data.features, index_t(1)}) {
        many_products(x.data(), data.rows, count, r.data(), 1, vectors, data.offsets.data(), data.tasks, 2, outs.data());
        for (index_t k = 0; k < vectors; ++k)
            for (index_t j = 0; j < count; ++j)
                for (index_t t = 0; t < data.tasks; ++t)
                    CHECK_CLOSE(outs[k][j * data.tasks + t], data.naive(x, j, t, k == 0, r[k]));
    }
}

template <class I>
void compare_sparse() {
    Data data;
    std::vector<double> value;
    std::vector<I> index, start{0};
    std::vector<double> dense(data.rows * data.features, 0.0);
    for (index_t j = 0; j < data.features; ++j) {
        for (index_t i = 0; i < data.rows; ++i)
            if (data.draw.below(4) == 0) {
                index.push_back(static_cast<I>(i));
                value.push_back(data.draw.normal());
                dense[j * data.rows + i] = value.back();
            }
        start.push_back(static_cast<I>(index.size()));
    }
    const Compressed<double, I> x{value.data(), index.data(), start.data(), data.features};
    for (bool squares : {false, true}) {
        std::vector<double> out(data.features * data.tasks), shared(data.features * 2);
        sparse_products(x, nullptr, data.features, data.r.data(), 1, data.task_of.data(), data.tasks, squares, 3,
                        out.data());
        const auto r = data.draw.normals(data.rows * 2);
        sparse_products(x, nullptr, data.features, r.data(), 2, nullptr, 2, squares, 3, shared.data());
        for (index_t j = 0; j < data.features; ++j) {
            for (index_t t = 0; t < data.tasks; ++t)
                CHECK_CLOSE(out[j * data.tasks + t], data.naive(dense, j, t, squares, data.r.data()));
            for (index_t t = 0; t < 2; ++t) {
                double sum = 0.0;
                for (index_t i = 0; i < data.rows; ++i)
                    sum += std::pow(dense[j * data.rows + i], squares ? 2 : 1) * r[i * 2 + t];
                CHECK_CLOSE(shared[j * 2 + t], sum);
            }
        }
    }
}

}  // namespace

TEST(dense_products_are_sums_over_the_rows_of_each_task) {
    compare_dense<double>();
    compare_dense<float>();
    compare_dense<std::int8_t>();
    compare_dense<std::uint8_t>();
}

TEST(sparse_products_are_those_of_the_dense_matrix) {
    compare_sparse<std::int32_t>();
    compare_sparse<std::int64_t>();
}

TEST(shared_products_are_a_matrix_product) {
    blas.dgemm = plain_dgemm;
    Data data;
    const index_t tasks = 11;
    const auto x = data.draw.normals<float>(data.rows * data.features);
    const auto r = data.draw.normals(data.rows * tasks);
    for (bool wide : {true, false}) {
        allow_wide_registers(wide);
        for (bool squares : {false, true}) {
            std::vector<double> out(data.features * tasks);
            shared_products(x.data(), data.rows, nullptr, data.features, r.data(), tasks, squares, 2, out.data());
            for (index_t j = 0; j < data.features; ++j)
                for (index_t t = 0; t < tasks; ++t) {
                    double sum = 0.0;
                    for (index_t i = 0; i < data.rows; ++i)
                        sum += std::pow(double(x[j * data.rows + i]), squares ? 2 : 1) * r[t * data.rows + i];
                    CHECK_CLOSE(out[j * tasks + t], sum);
                }
        }
    }
    allow_wide_registers(true);
}
