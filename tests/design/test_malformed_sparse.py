"""Sparse matrices whose indices point outside them: a ValueError that says so, never a look outside memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from tasksieve import (
    GraphSVC,
    GraphSVR,
    MultinomialOWL,
    MultiTaskElasticNet,
    MultiTaskLasso,
    MultiTaskLogisticRegression,
    MultiTaskOWL,
    OnlineMultiTaskClassifier,
    OnlineMultiTaskRegressor,
)
from tasksieve.design import as_storage, compressed

N, D, FAR = 30, 12, 10**8
TASK = np.repeat([0, 1, 2], 10)


def well_formed(form="csr", index=np.int32):
    dense = np.random.default_rng(0).standard_normal((N, D))
    dense[dense < 0.2] = 0.0
    matrix = scipy.sparse.csr_array(dense).asformat(form)
    if form == "coo":
        matrix.row, matrix.col = matrix.row.astype(index), matrix.col.astype(index)
    else:
        matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix


def outside(matrix):
    matrix.indices[3] = FAR


def negative(matrix):
    matrix.indices[-2] = -FAR


def just_outside(matrix):
    matrix.indices[0] = matrix.shape[1 if matrix.format == "csr" else 0]


def falling(matrix):
    matrix.indptr[4] = matrix.indptr[5] + 1


def leaping(matrix):
    matrix.indptr[4] = FAR


def beyond(matrix):
    matrix.indptr[-1] = FAR


def late(matrix):
    matrix.indptr[0] = 1


def below(matrix):
    matrix.indptr[:3] = -FAR


def short(matrix):
    matrix.indptr = matrix.indptr[:-2]


def lacking(matrix):
    matrix.indices = matrix.indices[:-1]


def row_outside(matrix):
    matrix.row[5] = FAR


def column_outside(matrix):
    matrix.col[5] = D


def row_negative(matrix):
    matrix.row[0] = -1


COMPRESSED = (outside, negative, just_outside, falling, leaping, beyond, late, below, short, lacking)
COORDINATES = (row_outside, column_outside, row_negative)
SPOILT = [(form, spoil) for form in ("csr", "csc") for spoil in COMPRESSED]
SPOILT += [("coo", spoil) for spoil in COORDINATES]


def spoilt(form, spoil, index=np.int32):
    matrix = well_formed(form, index)
    if form != "coo":
        matrix.has_canonical_format  # noqa: B018 - SciPy remembers the answer
    spoil(matrix)
    return matrix


every_flaw = pytest.mark.parametrize(
    ("form", "spoil"), SPOILT, ids=lambda part: part if isinstance(part, str) else part.__name__
)


@every_flaw
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_storage_refuses(form, spoil, index):
    for blocks in (spoilt(form, spoil, index), [well_formed(), spoilt(form, spoil, index)]):
        with pytest.raises(ValueError, match=r"^X: .*sparse matrix"):
            as_storage(blocks)
        with pytest.raises(ValueError, match=r"^X: .*sparse matrix"):
            as_storage(blocks, row_order=np.arange(N)[::-1])


LABELS = np.random.default_rng(1).standard_normal(N)
CLASSES = np.arange(N) % 3
MODELS = {
    "lasso": (MultiTaskLasso(alpha=0.1), LABELS),
    "elastic net": (MultiTaskElasticNet(alpha=0.1), LABELS),
    "logistic": (MultiTaskLogisticRegression(alpha=0.01), np.sign(LABELS)),
    "OWL": (MultiTaskOWL(alpha=0.1), LABELS),
    "stochastic OWL": (MultiTaskOWL(alpha=0.1, solver="spgd"), LABELS),
    "graph classes": (GraphSVC(graph=np.ones((3, 3))), np.sign(LABELS)),
    "graph numbers": (GraphSVR(graph=np.ones((3, 3))), LABELS),
    "online": (OnlineMultiTaskRegressor(), LABELS),
    "online classes": (OnlineMultiTaskClassifier(), np.sign(LABELS)),
}


@pytest.mark.sampled(10)
@every_flaw
@pytest.mark.parametrize("name", MODELS)
def test_models_refuse(name, form, spoil):
    model, y = MODELS[name]
    matrix = spoilt(form, spoil)
    with pytest.raises(ValueError, match=r"^X: .*sparse matrix"):
        model.fit(matrix, y, task=TASK)
    model.fit(well_formed(), y, task=TASK)
    with pytest.raises(ValueError, match=r"^X: .*sparse matrix"):
        model.predict(matrix, task=TASK)
    if hasattr(model, "partial_fit"):  # of a model that knows these tasks: the shortest way to the kernel
        with pytest.raises(ValueError, match=r"^X: .*sparse matrix"):
            model.partial_fit(matrix, y, task=TASK)


@pytest.mark.sampled(6)
@every_flaw
def test_multinomial_refuses(form, spoil):
    model = MultinomialOWL(alpha=0.01)
    with pytest.raises(ValueError, match=r"^X: .*sparse matrix"):
        model.fit(spoilt(form, spoil), CLASSES)
    with pytest.raises(ValueError, match=r"^X: .*sparse matrix"):
        model.fit(well_formed(), CLASSES).predict(spoilt(form, spoil))


def test_the_matrix_of_a_list_is_named():
    parts = [well_formed(), spoilt("csc", outside), well_formed()]
    with pytest.raises(
        ValueError, match=rf"^X\[1\]: indices of the sparse matrix reach {FAR}, but it has {N} rows"
    ):
        MultiTaskLasso(alpha=0.1).fit(parts, [LABELS] * 3)


def test_lists_of_indices_are_checked():
    matrix = well_formed("csr").tolil()
    matrix.rows[3][0] = FAR
    with pytest.raises(ValueError, match=rf"reach {FAR}, but it has {D} columns"):
        as_storage(matrix)


def test_blocks_are_checked():
    matrix = scipy.sparse.bsr_array(well_formed("csr").toarray(), blocksize=(2, 3))
    matrix.indices[0] = D // 3
    with pytest.raises(ValueError, match="columns of blocks"):
        as_storage(matrix)


def test_graphs_are_checked():
    graph = scipy.sparse.csr_array(np.ones((3, 3)))
    graph.indices[0] = FAR
    with pytest.raises(ValueError, match=r"^graph: indices of the sparse matrix"):
        GraphSVC(graph=graph).fit(well_formed(), np.sign(LABELS), task=TASK)


def test_types_that_differ_are_refused():
    matrix = well_formed()
    matrix.indptr = matrix.indptr.astype(np.int64)
    with pytest.raises(ValueError, match="must both be int32 or int64"):
        compressed(matrix, "X")


def test_room_behind_the_entries_is_allowed():
    """SciPy lets the arrays be longer than indptr says; what lies behind is no index."""
    plain, roomy = well_formed("csc"), well_formed("csc")
    roomy.indices = np.append(roomy.indices, [FAR, -1]).astype(np.int32)
    roomy.data = np.append(roomy.data, [1.0, 1.0])
    expected = MultiTaskLasso(alpha=0.1).fit(plain, LABELS, task=TASK).coef_
    np.testing.assert_array_equal(MultiTaskLasso(alpha=0.1).fit(roomy, LABELS, task=TASK).coef_, expected)
    for form in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr"):
        assert compressed(plain.asformat(form), "X").toarray() == pytest.approx(plain.toarray())
