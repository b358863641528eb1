// Sparse rows or columns that lie one after the other.
#pragma once
#include "common.hpp"

namespace tasksieve {

// The stored entries of one row or column. No `index`: it is dense, its places are in order.
template <class T, class I>
struct Entries {
    const T *value = nullptr;
    const I *index = nullptr;
    index_t count = 0;
};

// Line k has the entries from indptr[k] to indptr[k + 1].
template <class T, class I, class P = I>
struct Compressed {
    const T *data = nullptr;
    const I *indices = nullptr;
    const P *indptr = nullptr;
    index_t lines = 0;

    TASKSIEVE_INLINE Entries<T, I> operator[](index_t k) const {
        return {data + indptr[k], indices + indptr[k], static_cast<index_t>(indptr[k + 1] - indptr[k])};
    }
};

}  // namespace tasksieve
