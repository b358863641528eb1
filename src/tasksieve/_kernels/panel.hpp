// Products whose one side is so small that it stays in the cache: X'R for a few vectors R, and small sums of outer
// products.
#pragma once
#include "common.hpp"

namespace tasksieve {

// The vectors of R side by side, row after row, padded to whole registers.
class Panel {
  public:
    // r: column-major, rows x vectors, or (`by_rows`) row after row.
    Panel(const double *r, index_t rows, index_t vectors, bool by_rows = false);

    // out[k, t] = sum_i column_k[i] r[i, t] for `count` columns given by their addresses.
    void products(const double *const *columns, index_t count, double *out) const;

  private:
    index_t rows_, vectors_, width_, start_ = 0;
    bool by_rows_;
    const double *plain_;         // r itself, where the processor has no wide registers
    std::vector<double> padded_;  // empty there
};

// Lower triangle of K (n x n, column-major) += sum_k weights[k] x_k x_k', for vectors given by their addresses.
void add_outer_products(const double *const *vectors, const double *weights, index_t count, index_t n, double *k);

// Whether registers of 512 bits are used; `allow` = false forbids it (for tests).
bool wide_registers();
void allow_wide_registers(bool allow);

}  // namespace tasksieve
