// The bytes of PLINK's 2-bit calls: what each stands for, and words of them.
#pragma once
#include <cstring>

#include "common.hpp"

namespace tasksieve {

constexpr std::uint64_t low_bits = 0x5555555555555555u;
constexpr unsigned missing_code = 1;

// The four calls of every byte, as copies (missing: 0) and as their squares: 8 KB each, which stay in the first cache.
struct GenotypeTables {
    alignas(32) double copies[256][4], squares[256][4];
    std::uint32_t codes[256], flipped[256];  // the codes themselves, a byte each

    GenotypeTables() {
        const double value[4] = {2.0, 0.0, 1.0, 0.0};
        const std::uint32_t other[4] = {3, missing_code, 2, 0};
        for (int byte = 0; byte < 256; ++byte) {
            std::uint8_t plain[4], turned[4];
            for (int k = 0; k < 4; ++k) {
                const int code = (byte >> (2 * k)) & 3;
                copies[byte][k] = value[code];
                squares[byte][k] = value[code] * value[code];
                plain[k] = std::uint8_t(code);
                turned[k] = std::uint8_t(other[code]);
            }
            std::memcpy(&codes[byte], plain, 4);
            std::memcpy(&flipped[byte], turned, 4);
        }
    }
};

inline const GenotypeTables &genotype_tables() {
    static const GenotypeTables made;
    return made;
}

// Up to 8 bytes as one word, the first of them lowest.
TASKSIEVE_INLINE std::uint64_t word(const std::uint8_t *from, index_t bytes) {
    std::uint64_t found = 0;
    if (bytes >= 8) {
        for (int k = 0; k < 8; ++k) found |= std::uint64_t(from[k]) << (8 * k);
        return found;
    }
    for (int k = 0; k < int(bytes); ++k) found |= std::uint64_t(from[k]) << (8 * k);
    return found;
}

// The low bit of every missing call.
TASKSIEVE_INLINE std::uint64_t missing(std::uint64_t calls) { return calls & ~(calls >> 1) & low_bits; }

}  // namespace tasksieve
