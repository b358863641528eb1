// Genotypes as PLINK 1 keeps them (.bed): 2 bits a call, 4 calls a byte, one variant after another. A call counts copies
// of the variant's first allele: 00 is 2, 10 is 1, 11 is 0, and 01 is missing. The first row is in the lowest bits.
#pragma once
#include "common.hpp"

namespace tasksieve {

struct Genotypes {
    const std::uint8_t *bytes;
    index_t stride, rows;  // bytes from one column to the next, at least (rows + 3) / 4; rows

    const std::uint8_t *column(index_t j) const { return bytes + j * stride; }
};

// What stands for missing calls: means[hole_of[j], t] in column j and task t, where hole_of[j] >= 0. Columns without
// missing calls have -1.
struct Holes {
    const index_t *hole_of;
    const double *means;
};

// out[m][k, t] = sum_i x[i, j_k]^power r[m][i] over the rows i of task t; the first `squares` vectors multiply squared
// entries. Missing calls are the means. `portable`: as on a processor without byte look-ups, for tests.
void genotype_products(const Genotypes &x, const Holes &holes, const index_t *columns, index_t count,
                       const double *const *r, index_t squares, index_t vectors, const index_t *offsets, index_t tasks,
                       int threads, double *const *out, bool portable = false);

// out[k, m] = sum_i x[i, j_k]^power R[i, m] for many vectors over all rows, R column-major: columns are decoded, a block
// at a time, and each meets all vectors. The means have one column.
void genotype_shared_products(const Genotypes &x, const Holes &holes, const index_t *columns, index_t count,
                              const double *r, index_t vectors, bool squares, int threads, double *out);

// Columns as numbers: out[:, k], column-major.
void genotype_columns(const Genotypes &x, const Holes &holes, const index_t *columns, index_t count,
                      const index_t *offsets, index_t tasks, int threads, double *out);

// out[k, t] = calls of 2 copies, of 1 copy, and missing ones, among the rows of task t.
void genotype_counts(const Genotypes &x, const index_t *columns, index_t count, const index_t *offsets, index_t tasks,
                     int threads, std::int32_t *out);

// out[i] = missing calls of row i in some columns.
void genotype_row_holes(const Genotypes &x, const index_t *columns, index_t count, int threads, index_t *out);

// Rows of one file into another order: target column targets[k], rows `first` (a multiple of 4) and on, gets the calls of
// rows[0], rows[1], ... in column sources[k], -1 in `rows` leaves the place to another file, -1 in `sources` is a variant
// that the file does not have: all missing. `flips`, where given: the first allele is the other one. The target's bits
// must be 0 before.
void copy_genotypes(const Genotypes &x, const index_t *sources, const std::uint8_t *flips, const index_t *targets,
                    index_t count, const index_t *rows, index_t n_rows, index_t first, std::uint8_t *out,
                    index_t stride, int threads);

}  // namespace tasksieve
