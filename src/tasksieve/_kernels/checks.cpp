#include "checks.hpp"

#include <cstring>

namespace tasksieve {

namespace {

// As unsigned numbers, negative indices are the largest of all.
template <class I>
TASKSIEVE_INLINE bool inside(const I *index, index_t count, index_t length) {
    using Unsigned = std::make_unsigned_t<I>;
    Unsigned largest = 0;
    for (index_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<Unsigned>(index[i]));
    return count == 0 || static_cast<std::uint64_t>(largest) < static_cast<std::uint64_t>(length);
}

}  // namespace

TASKSIEVE_MULTIVERSION
bool all_inside(const std::int32_t *index, index_t count, index_t length) { return inside(index, count, length); }

TASKSIEVE_MULTIVERSION
bool all_inside(const std::int64_t *index, index_t count, index_t length) { return inside(index, count, length); }

TASKSIEVE_MULTIVERSION
bool all_finite(const double *values, index_t count) {
    constexpr std::uint64_t exponent = 0x7ff0000000000000ULL;
    std::uint64_t bad = 0;
    for (index_t i = 0; i < count; ++i) {
        std::uint64_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        bad |= std::uint64_t((bits & exponent) == exponent);
    }
    return bad == 0;
}

}  // namespace tasksieve
