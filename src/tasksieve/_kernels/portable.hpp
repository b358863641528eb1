// What compilers spell differently. GCC and Clang have words for all of it; any other compiler gets standard C++ that
// computes the same (TASKSIEVE_STANDARD_CXX asks for that, to test it).
#pragma once

#include <cstdint>

#if (defined(__GNUC__) || defined(__clang__)) && !defined(TASKSIEVE_STANDARD_CXX)
#define TASKSIEVE_GNU 1
#endif

#if defined(TASKSIEVE_GNU)
#define TASKSIEVE_INLINE inline __attribute__((always_inline))
#define TASKSIEVE_INLINE_LAMBDA __attribute__((always_inline))  // a lambda is compiled with the clone that it is in
#define TASKSIEVE_UNROLL(times) _Pragma(TASKSIEVE_WORDS(GCC unroll times))
#define TASKSIEVE_WORDS(...) #__VA_ARGS__
#else
#define TASKSIEVE_INLINE inline
#define TASKSIEVE_INLINE_LAMBDA
#define TASKSIEVE_UNROLL(times)
#endif

namespace tasksieve {

// Memory that will be read, or written, soon: a hint.
TASKSIEVE_INLINE void fetch_ahead(const void *address) {
#if defined(TASKSIEVE_GNU)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

TASKSIEVE_INLINE void fetch_ahead_to_write(const void *address) {
#if defined(TASKSIEVE_GNU)
    __builtin_prefetch(address, 1, 3);
#else
    (void)address;
#endif
}

// Between two looks at something that another thread will change.
TASKSIEVE_INLINE void pause_a_moment() {
#if defined(TASKSIEVE_GNU) && defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

TASKSIEVE_INLINE int count_ones(std::uint64_t bits) {
#if defined(TASKSIEVE_GNU)
    return __builtin_popcountll(bits);
#else
    bits -= (bits >> 1) & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + ((bits >> 2) & 0x3333333333333333u);
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return static_cast<int>((bits * 0x0101010101010101u) >> 56);
#endif
}

// The place of the lowest one; there must be one.
TASKSIEVE_INLINE int lowest_one(std::uint64_t bits) {
#if defined(TASKSIEVE_GNU)
    return __builtin_ctzll(bits);
#else
    return count_ones((bits & (~bits + 1)) - 1);
#endif
}

// The upper half of a product of 128 bits.
TASKSIEVE_INLINE std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#if defined(TASKSIEVE_GNU) && defined(__SIZEOF_INT128__)
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#else
    const std::uint64_t low = 0xFFFFFFFFu, a0 = a & low, a1 = a >> 32, b0 = b & low, b1 = b >> 32;
    const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32), other = a0 * b1 + (middle & low);
    return a1 * b1 + (middle >> 32) + (other >> 32);
#endif
}

}  // namespace tasksieve
