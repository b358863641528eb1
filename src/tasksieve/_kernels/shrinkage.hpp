// Thresholds of sparse models, written so that loops over them fill the processor's vectors.
#pragma once

#include <cstring>

#include "common.hpp"

namespace tasksieve {

TASKSIEVE_INLINE double soft(double u, double threshold) {
    // u - clip(u, -threshold, threshold): no branch, and no library function, which the clones could not inline
    const double low = u < -threshold ? -threshold : u;
    return u - (low > threshold ? threshold : low);
}

// 1 / sqrt(s) for normal s > 0, to the last bit or two: from the exponent's half by four Newton steps, which fill the
// processor's vectors where its square root and its division stand in line.
TASKSIEVE_INLINE double inverse_root(double s) {
    std::uint64_t bits;
    std::memcpy(&bits, &s, sizeof bits);
    bits = 0x5fe6eb50c7b537a9ULL - (bits >> 1);
    double r;
    std::memcpy(&r, &bits, sizeof r);
    const double half = 0.5 * s;
    r *= 1.5 - (half * r) * r;
    r *= 1.5 - (half * r) * r;
    r *= 1.5 - (half * r) * r;
    r *= 1.5 - (half * r) * r;
    return r;
}

// (1 - k / sqrt(size))_+
TASKSIEVE_INLINE double shrink(double size, double k) {
    const double factor = 1.0 - k * inverse_root(size > 1e-300 ? size : 1e-300);
    return size > k * k && !(factor < 0.0) ? factor : 0.0;
}

}  // namespace tasksieve
