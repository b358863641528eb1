#include "growing_factor.hpp"

#include "vectors.hpp"

namespace tasksieve {

namespace {

constexpr double independent = 1e-9;  // of a vector's square: with less left of it, it depends on the others

// b becomes L^-1 b.
TASKSIEVE_MULTIVERSION void forward(const double *factor, index_t capacity, index_t n, double *b) {
    for (index_t k = 0; k < n; ++k) {
        const double *column = factor + k * capacity;
        b[k] /= column[k];
        inline_axpy(-b[k], column + k + 1, n - k - 1, b + k + 1);
    }
}

// b becomes L^-T b.
TASKSIEVE_MULTIVERSION void backward(const double *factor, index_t capacity, index_t n, double *b) {
    for (index_t k = n - 1; k >= 0; --k) {
        const double *column = factor + k * capacity;
        b[k] = (b[k] - inline_dot(column + k + 1, b + k + 1, n - k - 1)) / column[k];
    }
}

// Two columns rotated: (a, b) become (c a + s b, c b - s a).
TASKSIEVE_MULTIVERSION void rotate(double c, double s, index_t n, double *a, double *b) {
#pragma omp simd
    for (index_t i = 0; i < n; ++i) {
        const double u = a[i], v = b[i];
        a[i] = c * u + s * v;
        b[i] = c * v - s * u;
    }
}

}  // namespace

bool GrowingFactor::append(double *products, double own) {
    const index_t n = size_;
    if (n == capacity_) {
        const index_t wider = std::max<index_t>(32, 2 * capacity_);
        std::vector<double> larger(wider * wider);
        for (index_t k = 0; k < n; ++k) std::copy_n(&factor_[k * capacity_ + k], n - k, &larger[k * wider + k]);
        factor_.swap(larger);
        capacity_ = wider;
    }
    forward(factor_.data(), capacity_, n, products);
    const double left = own - dot(products, products, n);
    if (!(left > independent * own)) return false;
    for (index_t k = 0; k < n; ++k) factor_[k * capacity_ + n] = products[k];
    factor_[n * capacity_ + n] = std::sqrt(left);
    ++size_;
    return true;
}

void GrowingFactor::remove(index_t place) {
    const index_t n = --size_;
    for (index_t k = 0; k <= n; ++k) {  // rows below it move up; those right of it keep a number beyond the diagonal
        double *column = &factor_[k * capacity_];
        const index_t from = std::max(k, place + 1);
        if (from <= n) std::copy(column + from, column + n + 1, column + from - 1);
    }
    // Column k holds rows from k - 1 on now (k > place): rotations with its neighbour remove that number.
    for (index_t k = place; k < n; ++k) {
        double *a = &factor_[k * capacity_], *b = a + capacity_;
        const double x = a[k], y = b[k], length = std::hypot(x, y);
        rotate(x / length, y / length, n - k, a + k, b + k);
    }
}

void GrowingFactor::solve(double *right) const {
    forward(factor_.data(), capacity_, size_, right);
    backward(factor_.data(), capacity_, size_, right);
}

}  // namespace tasksieve
