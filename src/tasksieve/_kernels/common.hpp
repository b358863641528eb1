// What every kernel file needs: the index type, and functions compiled for several processors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "portable.hpp"

// One binary serves every x86-64 machine: the loader picks the clone that the processor can run. The clones are named by
// instruction set: one named by a processor ("arch=haswell") would run on that very model and on no later one.
// Sanitizers start after the loader does, so a sanitized build keeps only the plain version.
#if defined(TASKSIEVE_GNU) && defined(__x86_64__) && !defined(__clang__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GNUC__ >= 12
#define TASKSIEVE_MULTIVERSION __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TASKSIEVE_MULTIVERSION __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define TASKSIEVE_MULTIVERSION
#endif

// MACRO(T) for every type in which data are read as they lie in memory.
#define TASKSIEVE_STORED_TYPES(MACRO) MACRO(double) MACRO(float) MACRO(std::int8_t) MACRO(std::uint8_t)

namespace tasksieve {

using index_t = std::int64_t;

}  // namespace tasksieve
