"""Which solver follows a path: every threshold of that decision, facts in and a choice out.

Three kinds of solvers follow a path to the same certified gap. On the *rows*: working sets and safe screening, with a
pass over all columns only where bounds leave something open (`engine`). On *sums* of products of the columns, where
these are less work (`gram`, `sums`). On a *device* that holds the columns: one exact pass a value (`device_path`).
Sums are taken of the data as they are given, before anything else is made of them (`choose_for_data`), or of a problem
in memory (`choose_for_problem`). On rows, a small problem of a smooth loss is one compiled call (`smooth_walk`), and
the engine's where that ends. Work is counted, never timed, so that a choice is the same in every run.

The environment variable ``TASKSIEVE_PATH_SOLVER`` (``rows``, ``sums`` or ``device``) puts one of them in place of the
counting, where it can solve the problem at all; elsewhere work is counted as without it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from ..design.memory import free_memory

VARIABLE = "TASKSIEVE_PATH_SOLVER"

# --- sums of products ------------------------------------------------------------------------------------------------

MOST_FEATURES = 3000  # beyond, working sets are less work than a Gram matrix
MOST_FEATURES_AT_ONCE = 256  # where a single value is requested: a few passes over X cost less than more of them
MOST_MATRICES_AT_ONCE = 64  # for a single value: with more, sums of each cost more than a few passes over all rows
MOST_WORK = 5e10  # multiplications to form the Gram matrices, and
WORK_A_VALUE = 2e8  # of these, for every value (after the first, where the rows are at hand)
WORK_AT_ONCE = 2e7  # for the first
# The first two for deep paths of one matrix, at least as long as it is wide, with many features in play: there working
# sets are several times the work.
MOST_WORK_IF_FULL, WORK_A_VALUE_IF_FULL = 1e11, 1e9
MANY_EXPECTED = 0.25  # of the features, and
DEEP = 0.03  # of the largest strength: above that, of features that are alike one stands for the others
LEAST_WORK = 4e4  # products of one pass, below which a single value is over before sums pay
WIDEST = 12  # times as many features as rows: there working sets are small and screening is strong
WIDEST_HALVES = 4  # the same on halves of the rows, by the rows of a half
LEAST_FEATURES_IN_PLAY = 256
FEATURES_IN_PLAY = 10.0  # times the rows of a matrix: more features in play than this cost more than residuals would

SMALL_BYTES = 4 << 20  # X up to this is copied, whatever else is done with it
ROWS_A_FEATURE_SMALL = 2.0  # at least so many rows of a matrix then
TALL_BYTES = 32 << 20  # X from this on is read in blocks and not copied
ROWS_A_FEATURE_TALL = 4.0  # at least so many rows of a matrix then
TALL_TABLE_CELLS = 1 << 23  # of a table on disk, from which on it is read in chunks

# --- one compiled call for a smooth loss ---------------------------------------------------------------------------

MOST_PACKED = 1 << 22  # numbers of the columns
MOST_READ = 1 << 22  # multiplications of one pass

# --- memory ----------------------------------------------------------------------------------------------------------

MOST_BYTES = 1 << 30  # for sums, and
SHARE_OF_FREE = 0.25  # no more than this of the free memory
FEW_BYTES = 1 << 24  # which there always are
SHARED_BYTES = 1 << 30  # that walks in lockstep may keep, or half of X where that is more

# --- bounds on all features ------------------------------------------------------------------------------------------

JOINT_BOUNDS = 1_000_000  # features x tasks from which on reading them for every bound is what a value costs

# --- devices ---------------------------------------------------------------------------------------------------------

# Of a column, beyond which a pass costs more than vectors over the features do where these are: a device reads its
# memory a hundred times as fast as numbers cross or this process reads its own.
MOST_COLUMN_BYTES = 1 << 16

# --- row metrics -----------------------------------------------------------------------------------------------------

# Lengths of columns under the row metric of a ball, beside those that the largest k of each task gives.
HELPFUL_LENGTH = 0.9  # longer ones reject hardly more, and cost as much again as the bounds themselves
# Of the lengths that are known: shorter ones are measured beside the next products. So two to four measurements serve a
# path of fifty values; twice as many would reject half a percent of the features more.
WORTH_MEASURING = 0.75
FEW_UNDECIDED = 0.02  # of the features: so few left by the last screening are not worth a measurement


class Kind(StrEnum):
    """What follows a path."""

    #: working sets and safe screening on the rows
    ROWS = "rows"
    #: sums of products of all columns
    SUMS = "sums"
    #: the same, of rows that are read in blocks and not kept
    SUMS_IN_BLOCKS = "sums-in-blocks"
    #: an exact pass a value, on the device that holds the columns
    DEVICE = "device"


@dataclass(frozen=True)
class Choice:
    """What follows a path, and why."""

    kind: Kind
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def handed_over(choice: Choice) -> Choice:
    """To the rows, where sums that were chosen came to their end: too few digits, too slow, too many features."""
    return Choice(Kind.ROWS, f"from where sums came to their end; at first {choice}")


@dataclass(frozen=True)
class Facts:
    """What the choice depends on.

    - `n_values`: Strengths that will be requested.
    - `n_rows`: Rows that sums are taken over: of the one matrix that all tasks share, or of all tasks.
    - `n_features`, `n_tasks`: Features that sums are about: those that are penalised, of data as they are given all.
    - `n_matrices`: Gram matrices that differ.
    - `n_bytes`: Of X as it is stored.
    - `column_bytes`: Of one column.
    - `unlike`: Whether tasks see different rows of a matrix that they share.
    - `location` ({"memory", "blocks", "device"}): Where the columns are: here, in blocks that other processes or files
      hold, or on a device that makes passes.
    - `n_blocks`: Of each matrix in blocks; 0 where its columns are cut, too.
    - `by_sums`, `by_device`: Whether loss, penalty and options are such that sums, or passes on a device, determine the
      answer.
    - `n_covariates`: Unpenalised features: what these explain has more digits by residuals.
    - `n_expected`: Features that the smallest strength would not leave out beside W = 0: roughly those that come into
      play. 0 where that is not known.
    - `depth`: The smallest strength, in parts of the one that leaves out all features.
    """

    n_values: int
    n_rows: int
    n_features: int
    n_tasks: int = 1
    n_matrices: int = 1
    n_bytes: int = 0
    column_bytes: int = 0
    dense: bool = True
    unlike: bool = False
    location: Literal["memory", "blocks", "device"] = "memory"
    n_blocks: tuple[int, ...] = ()
    by_sums: bool = True
    by_device: bool = False
    n_covariates: int = 0
    n_expected: int = 0
    depth: float = 1.0

    @property
    def gram_work(self) -> float:
        """Multiplications to form the Gram matrices."""
        return float(self.n_rows) * self.n_features * self.n_features

    @property
    def shape(self) -> str:
        """In words."""
        matrices = f" in {self.n_matrices} matrices" if self.n_matrices > 1 else ""
        return f"{self.n_rows:,} rows x {self.n_features:,} features{matrices}, {self.n_values:,} values"


def choose_for_data(facts: Facts, folds: bool = False) -> Choice:
    """For data as they are given: sums at once, sums in blocks, or rows, for which `choose_for_problem` decides later.
    With `folds` the sums are those of each fold of a cross-validation, and of small data they are taken later."""
    if not facts.by_sums:
        return Choice(Kind.ROWS, "sums do not determine this loss, penalty or option")
    if _forced() is Kind.ROWS:
        return Choice(Kind.ROWS, f"{VARIABLE}=rows")
    if not folds and _is_small(facts):
        return Choice(Kind.SUMS, f"{facts.shape}: small, and rows outnumber features")
    if _is_tall(facts):
        return Choice(Kind.SUMS_IN_BLOCKS, f"{facts.shape}: rows outnumber features by far, they are read once")
    return Choice(Kind.ROWS, f"{facts.shape}: sums of products would be more work")


def choose_for_problem(facts: Facts) -> Choice:
    """For a problem whose columns are in memory or on a device."""
    forced = _forced()
    by_sums = facts.by_sums and facts.dense and facts.location == "memory"
    by_device = facts.by_device and facts.location == "device"
    if forced is Kind.ROWS or (forced is Kind.DEVICE and by_device):
        return Choice(forced, f"{VARIABLE}={forced}")
    if by_device and facts.column_bytes <= MOST_COLUMN_BYTES:
        return Choice(Kind.DEVICE, f"columns of {facts.column_bytes:,} bytes on a device: a pass a value is cheap")
    if by_device:
        return Choice(Kind.ROWS, f"columns of {facts.column_bytes:,} bytes on a device: bounds save passes")
    if not by_sums:
        return Choice(Kind.ROWS, "sums do not determine these labels, or this loss, penalty, option or storage")
    if forced is not Kind.SUMS and not sums_pay(facts):
        return Choice(Kind.ROWS, f"{facts.shape}: working sets are less work than a Gram matrix")
    if not memory_allows(facts):
        return Choice(Kind.ROWS, f"{facts.shape}: there is no memory for Gram matrices")
    because = f"{VARIABLE}=sums" if forced is Kind.SUMS else f"{facts.shape}: a Gram matrix is less work than passes"
    return Choice(Kind.SUMS, because)


def _forced() -> Kind | None:
    """The solver that the environment variable forces."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return None
    if wanted not in (Kind.ROWS, Kind.SUMS, Kind.DEVICE):
        raise ValueError(f"{VARIABLE} must be rows, sums or device; got {wanted!r}.")
    return Kind(wanted)


def _is_small(facts: Facts) -> bool:
    """Rows so few that a copy of them is nothing, and yet many beside the features: with the sums of their products
    the answer is near, and fixed costs would dominate any other solver."""
    if not facts.dense or facts.location != "memory" or facts.n_bytes > SMALL_BYTES:
        return False
    if facts.unlike or facts.n_covariates:
        return False
    if facts.n_values == 1 and facts.n_matrices > MOST_MATRICES_AT_ONCE:
        return False
    if facts.n_rows < ROWS_A_FEATURE_SMALL * facts.n_features * facts.n_matrices:
        return False
    return facts.gram_work <= WORK_AT_ONCE + WORK_A_VALUE * (facts.n_values - 1)


def _is_tall(facts: Facts) -> bool:
    if facts.n_features > (MOST_FEATURES if facts.n_values > 1 else MOST_FEATURES_AT_ONCE):
        return False
    if facts.location == "blocks":  # there are many workers: what counts is what has to be moved
        moved = 8.0 * facts.n_matrices * (facts.n_features + 2.0) ** 2 * sum(facts.n_blocks)
        if sum(facts.n_blocks) < 2 or not all(facts.n_blocks) or moved > facts.n_bytes:
            return False
    else:
        if not facts.dense or facts.n_bytes < TALL_BYTES:
            return False
        most = min(MOST_WORK, WORK_A_VALUE * facts.n_values)
        if facts.n_features > MOST_FEATURES_AT_ONCE and facts.gram_work > most:
            return False
    return sums_are_smaller(facts.n_rows, facts.n_features, facts.n_matrices)


def sums_are_smaller(n_rows: int, n_features: int, n_matrices: int, n_cells: int = 4) -> bool:
    """Whether rows are so many that sums over them say the same in less memory, `n_cells` of them for each matrix."""
    if n_rows < ROWS_A_FEATURE_TALL * n_features * n_matrices:
        return False
    return _fits(8.0 * n_cells * n_matrices * (n_features + 64.0) ** 2)


def table_is_tall(n_rows: int, n_columns: int) -> bool:
    """Whether a table on disk is to be read in chunks, of which only sums are kept."""
    if n_rows * n_columns <= TALL_TABLE_CELLS or n_columns > MOST_FEATURES:
        return False
    return sums_are_smaller(n_rows, n_columns, 1)


def sums_pay(facts: Facts) -> bool:
    """Whether Gram matrices are less work than the engine, where the columns are here."""
    widest = max(WIDEST * facts.n_rows / facts.n_matrices, LEAST_FEATURES_IN_PLAY)
    if not 0 < facts.n_features <= min(MOST_FEATURES, widest):
        return False
    one_pass = float(facts.n_rows) * facts.n_features * facts.n_tasks
    if facts.n_values == 1 and (facts.n_matrices > 1 or one_pass < LEAST_WORK):
        return False
    one_long = facts.n_matrices == 1 and facts.n_rows >= facts.n_features
    full = one_long and facts.n_expected > MANY_EXPECTED * facts.n_features and facts.depth <= DEEP
    most, a_value = (MOST_WORK_IF_FULL, WORK_A_VALUE_IF_FULL) if full else (MOST_WORK, WORK_A_VALUE)
    return facts.gram_work <= min(most, WORK_AT_ONCE + a_value * (facts.n_values - 1))


def smooth_walk_pays(n_rows: int, n_samples: int, n_features: int) -> bool:
    """Whether one compiled call for the values of a smooth loss is less work than the engine: with columns so few and
    so short that all are packed, and read at every value, before calls for each value are over."""
    if _forced() is not None or not 0 < n_features <= MOST_FEATURES:
        return False
    return n_rows * n_features <= MOST_PACKED and n_samples * n_features <= MOST_READ


def sums_pay_on_halves(facts: Facts) -> bool:
    """The same for the halves of the rows that stability selection follows."""
    narrow = facts.n_features + facts.n_covariates <= WIDEST_HALVES * facts.n_rows / facts.n_matrices
    return (narrow or _forced() is Kind.SUMS) and choose_for_problem(facts).kind is Kind.SUMS


def features_in_play(n_rows: float) -> int:
    """How many features a walk on sums may have in play, by the rows of a matrix."""
    return max(int(FEATURES_IN_PLAY * n_rows), LEAST_FEATURES_IN_PLAY)


def memory_allows(facts: Facts, more: int = 0, n_walks: int = 1) -> bool:
    """Whether there is room for walks on sums, each with Gram matrices and features in play, for a copy of the columns,
    and for so many more sets of matrices."""
    count, matrices = facts.n_features, facts.n_matrices
    room = min(count, features_in_play(facts.n_rows / matrices))
    sums = matrices * (float(count) ** 2 * (n_walks + more) + n_walks * room**2)
    needed = 8.0 * (sums + 2.0 * facts.n_rows * count)
    return needed <= FEW_BYTES or _fits(needed)


def _fits(needed: float) -> bool:
    return needed <= min(MOST_BYTES, SHARE_OF_FREE * free_memory())


def bytes_of_walk(n_features: int, n_tasks: int) -> int:
    """What a walk on rows keeps of every feature: anchors, norms and a few vectors."""
    return n_features * (96 + 32 * n_tasks)


def joint_bounds_pay(n_features: int, n_tasks: int) -> bool:
    """Whether bounds on all features come from a few numbers each, though the remainder is longer for it."""
    return n_tasks > 1 and n_features * n_tasks >= JOINT_BOUNDS


def walks_share_readings(expensive: bool, n_walks: int, n_features: int, n_tasks: int, stored_bytes: int) -> bool:
    """Whether folds are solved in lockstep, so that one reading of X serves all: reading is what passes cost, and what
    the walks keep is affordable."""
    return expensive and n_walks * bytes_of_walk(n_features, n_tasks) <= max(SHARED_BYTES, stored_bytes // 2)


def walks_that_fit(n_features: int, n_tasks: int, stored_bytes: int) -> int:
    """How many walks on rows may keep what they keep at the same time."""
    free = int(SHARE_OF_FREE * min(free_memory(), 2.0**62))
    return max(SHARED_BYTES, min(stored_bytes // 2, free)) // bytes_of_walk(n_features, n_tasks)


def metric_helps(length: float) -> bool:
    """Whether a ball is worth bounding by its row metric, by the mean length of columns under it, of 1 where the
    largest k of each task counts for all of its rows."""
    return length < HELPFUL_LENGTH


def metric_pays(known: float, exact: float, undecided: float) -> bool:
    """Whether norms under a row metric are measured in the reading of all columns that comes next: by the mean lengths
    that follow from the last measurement, or from the largest k of each task, those that this one would give, and the
    part of the features that screening has left at the last value. It costs no reading of its own, but about the
    arithmetic of two more vectors."""
    return metric_helps(exact) and exact < WORTH_MEASURING * known and undecided > FEW_UNDECIDED
