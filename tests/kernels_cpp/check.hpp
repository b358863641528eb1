// A test is a function that registers itself; a check that fails says where, and the program then ends with 1.
#pragma once

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "common.hpp"

namespace check {

struct Test {
    const char *name;
    void (*run)();
};

inline std::vector<Test> &all() {
    static std::vector<Test> tests;
    return tests;
}

inline int failures = 0;

inline void verify(bool holds, const char *what, const char *file, int line) {
    if (holds) return;
    ++failures;
    std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
}

inline bool close(double a, double b, double tolerance = 1e-12) {
    return std::fabs(a - b) <= tolerance * (1.0 + std::fabs(b));
}

// Numbers that are the same in every run.
struct Draw {
    std::mt19937_64 engine{20250101};

    double normal() { return std::normal_distribution<double>()(engine); }
    double uniform(double low = 0.0, double high = 1.0) {
        return std::uniform_real_distribution<double>(low, high)(engine);
    }
    tasksieve::index_t below(tasksieve::index_t n) {
        return std::uniform_int_distribution<tasksieve::index_t>(0, n - 1)(engine);
    }
    template <class T = double>
    std::vector<T> normals(tasksieve::index_t count, double scale = 1.0) {
        std::vector<T> out(count);
        for (T &v : out) v = static_cast<T>(scale * normal());
        return out;
    }
};

}  // namespace check

#define CHECK(condition) check::verify((condition), #condition, __FILE__, __LINE__)
#define CHECK_CLOSE(...) check::verify(check::close(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define TEST(name)                                                                             \
    static void name();                                                                        \
    static const bool name##_listed = (check::all().push_back({#name, &name}), true);          \
    static void name()
