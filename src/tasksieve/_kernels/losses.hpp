// The logistic and multinomial formulas, none of which overflows; compiled with the options of the file that uses them.
#pragma once
#include "common.hpp"

namespace tasksieve {

TASKSIEVE_INLINE double log1p_exp(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

TASKSIEVE_INLINE double sigmoid(double x) { return x >= 0 ? 1.0 / (1.0 + std::exp(-x)) : std::exp(x) / (1.0 + std::exp(x)); }

// Derivative in z of log(1 + exp(-y z)), y = 1 or -1.
TASKSIEVE_INLINE double logistic_derivative(double z, double y) { return -y * sigmoid(-y * z); }

// z becomes exp(z) / sum exp(z).
TASKSIEVE_INLINE void softmax(double *z, index_t classes) {
    const double top = *std::max_element(z, z + classes);
    double sum = 0.0;
    for (index_t t = 0; t < classes; ++t) sum += z[t] = std::exp(z[t] - top);
    for (index_t t = 0; t < classes; ++t) z[t] /= sum;
}

}  // namespace tasksieve
