"""A path through signed and masked messages: the bits of one without messages, and nothing asked twice."""

from __future__ import annotations

import numpy as np
import pytest
from federated_sites import Federation, RowsOfSite

from tasksieve.federated.in_memory import SitesInMemory
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.path import FederatedPath
from tasksieve.federated.together import follow
from tasksieve.tasks import read_tasks

pytest.importorskip("cryptography")

D = 40


class LocalRows(RowsOfSite):
    """A site with an engine of its own."""

    def __init__(self, X, y, loss):
        super().__init__(X, y)
        self.problem = LocalProblem(read_tasks([X], [y]), loss)

    def answer(self, question):
        return self.problem.answer(question)


def sites_of(loss):
    rng = np.random.default_rng(5)
    found = {}
    for name in ("north", "east", "south", "west"):
        X = rng.normal(size=(25, D)) * rng.lognormal(sigma=2.0, size=D)  # features of very different scales
        z = X[:, :3] @ rng.normal(size=3) + rng.normal(size=25)
        found[name] = LocalRows(X, np.where(z > 0, 1.0, -1.0) if loss == "logistic" else 100.0 * z, loss)
    return found


def followed(ask, loss):
    path = FederatedPath(D, loss=loss, n_values=5, eps=0.4)
    follow([path], ask)
    return path


def same_path(one, two):
    assert np.array_equal(one.objectives, two.objectives)
    assert np.array_equal(one.gaps, two.gaps)
    for k in range(len(one.values)):
        assert np.array_equal(one.features(k), two.features(k))
        assert np.array_equal(one.row_norms(k), two.row_norms(k))


@pytest.mark.parametrize("loss", ["squared", pytest.param("logistic", marks=pytest.mark.slow)])
def test_a_masked_path_has_the_bits_of_an_open_one(tmp_path, loss):
    local = sites_of(loss)
    memory = SitesInMemory([site.problem for site in local.values()])
    expected = followed(memory.ask, loss)
    assert expected.converged.all()
    for masked in (True, False):
        sites = Federation(local, tmp_path / f"{masked}", masked)
        sites.plan.loss = loss
        sites.nodes = {name: sites.node(name) for name in local}
        asking = sites.asking(tmp_path / f"{masked}" / "kept")
        same_path(followed(asking.ask, loss), expected)
        assert asking.traffic.rounds == memory.rounds
        # headers and signatures are all that comes on top of the words
        assert 0 < asking.traffic.up - memory.up < 600 * memory.rounds
    again = sites.asking(tmp_path / "False" / "kept")
    calls = sites.calls
    same_path(followed(again.ask, loss), expected)
    assert (sites.calls, again.traffic.reused) == (calls, memory.rounds)
