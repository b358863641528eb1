// Memory for large arrays that are read in no order: on huge pages where the system has them, so that finding an entry
// does not cost a walk through the page tables.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tasksieve {

template <class T>
struct PagedAllocator {
    using value_type = T;
    static constexpr std::size_t kPage = std::size_t(1) << 21, kLarge = std::size_t(1) << 19, kLine = 64;

    PagedAllocator() = default;
    template <class U>
    PagedAllocator(const PagedAllocator<U> &) {}

    T *allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        const std::size_t unit = bytes >= kLarge ? kPage : kLine;
        const std::size_t rounded = (bytes + unit - 1) / unit * unit;
#if defined(_WIN32)
        void *memory = ::operator new(rounded);
#else
        void *memory = std::aligned_alloc(unit, rounded ? rounded : unit);
        if (!memory) throw std::bad_alloc();
#endif
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        if (unit == kPage) madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: what happens without it is the same
#endif
        return static_cast<T *>(memory);
    }
    void deallocate(T *memory, std::size_t) {
#if defined(_WIN32)
        ::operator delete(memory);
#else
        std::free(memory);
#endif
    }
    template <class U>
    bool operator==(const PagedAllocator<U> &) const { return true; }
    template <class U>
    bool operator!=(const PagedAllocator<U> &) const { return false; }
};

using Cells = std::vector<double, PagedAllocator<double>>;

}  // namespace tasksieve
