"""NumPy twins of `graph_rows.cpp`: rows as the graph models read them, and the hashed features of strings.

A row is a pair (indices, values).
"""

from __future__ import annotations

import numpy as np

WORD = (1 << 64) - 1


class DenseRows:
    def __init__(self, x):
        self.x = x
        self.rows, self.features = x.shape
        self.entries = float(self.features)

    def row(self, r):
        return slice(None, self.features), np.asarray(self.x[r], dtype=np.float64)


class SparseRows:
    def __init__(self, data, indices, indptr, features):
        self.data, self.indices, self.indptr = data, indices, indptr
        self.rows, self.features = len(indptr) - 1, features
        self.entries = len(data) / max(self.rows, 1)

    def row(self, r):
        span = slice(self.indptr[r], self.indptr[r + 1])
        return self.indices[span], np.asarray(self.data[span], dtype=np.float64)


class StringRows:
    """Feature (k, p, k-mer): offset[k-1] + p 2^(bits k) + code up to degree `direct`, hashed beyond it."""

    def __init__(self, text, letters, bits, direct, offset, weight, features):
        self.text, self.letters, self.bits, self.direct = text, letters, bits, direct
        self.offset, self.weight, self.features = offset, weight, features
        self.rows, self.length = text.shape
        self.entries = float(sum(max(self.length - k, 0) for k in range(len(weight))))

    def row(self, r):
        codes = [int(c) for c in self.letters[self.text[r]]]
        base = int(self.offset[self.direct])
        room = self.features - base
        indices, values = [], []
        for k in range(1, len(self.weight) + 1):
            for p in range(self.length - k + 1):
                word = codes[p : p + k]
                if 255 in word:
                    continue
                value = 0
                for c in word:
                    value = (value << self.bits) | c
                if k <= self.direct:
                    indices.append(int(self.offset[k - 1]) + (p << (self.bits * k)) + value)
                else:
                    h = ((value + k * 0x9E3779B97F4A7C15) & WORD) ^ ((p * 0xD6E8FEB86659FD93) & WORD)
                    h = (h * 0xBF58476D1CE4E5B9) & WORD
                    h ^= h >> 32
                    h = ((h * 0x94D049BB133111EB) & WORD) >> 32
                    indices.append(base + ((h * room) >> 32))
                values.append(float(self.weight[k - 1]))
        return np.array(indices, dtype=np.int64), np.array(values)


def dense_rows(x, threads):
    return DenseRows(x)


def sparse_rows(data, indices, indptr, features):
    return SparseRows(data, indices, indptr, features)


def string_rows(text, letters, bits, direct, offset, weight, features):
    return StringRows(text, letters, bits, direct, offset, weight, features)


def row_squares(rows, threads, out):
    """``out[r] = ||x_r||^2`` (strings: without the cross terms of features that collide)."""
    for r in range(rows.rows):
        out[r] = np.sum(rows.row(r)[1] ** 2)


def count_hashed(rows, threads, counts):
    """Features of each string."""
    for r in range(rows.rows):
        counts[r] = len(rows.row(r)[0])


def hash_rows(rows, threads, indptr, indices, values):
    """Features and values of all strings, neither sorted nor merged."""
    for r in range(rows.rows):
        span = slice(indptr[r], indptr[r + 1])
        indices[span], values[span] = rows.row(r)
