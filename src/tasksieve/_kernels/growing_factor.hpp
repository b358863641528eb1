// The Cholesky factor of a matrix of products to which vectors come and from which they go.
#pragma once
#include "common.hpp"

namespace tasksieve {

class GrowingFactor {
  public:
    index_t size() const { return size_; }
    void clear() { size_ = 0; }

    // One more vector, from its products with those that are in (overwritten) and its own square. False, and nothing has
    // changed, where it depends on the others.
    bool append(double *products, double own);
    void remove(index_t place);
    // The right-hand side becomes the solution.
    void solve(double *right) const;

  private:
    index_t size_ = 0, capacity_ = 0;
    std::vector<double> factor_;  // lower triangle, by columns of length capacity_
};

}  // namespace tasksieve
