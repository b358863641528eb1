r"""``statement.npz``: the gap of the pooled model, from sums over sites that the sites have signed.

.. math::

    P = \frac1N \Bigl(\sum_t F_t + \ell_1 \sum_{jt} |w_{jt}|\Bigr) + \alpha \sum_j u_j \|w_j\|
        + \frac{\rho}{2} \sum_j \|w_j\|^2

With open answers the words of each site are a half that anybody can add up (``verify.py statement``); under masks the
sums alone are known. In both cases the statement carries the messages that the sites have signed: `check_signatures`
goes through them, `verify.py` needs nothing but NumPy and looks at the sums.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import verify
from ..proof.forms import form_of
from .answer import Words, misfits
from .asking import total_words
from .errors import FederatedError
from .keys import Agreement, roster
from .messages import unseal_round, unseal_words
from .part import Archive, added_words, agreed_arrays
from .question import Question
from .units import Units

Array = np.ndarray[Any, Any]
#: the coordinator's message, and the sites' replies by name: as `Asking.strict` keeps them
Exchange = tuple[bytes, Mapping[str, bytes]]

_WIDER = 1.0 + 2.0**-20  # claims, beside rounding


class SignedSums:
    """The words with which all sites of a plan have answered questions of kind "part", signatures checked.

    Parameters
    ----------
    plan : Agreement
    exchanges : sequence of (bytes, mapping of str to bytes)
        The coordinator's messages and the sites' replies, `Asking.strict`. Questions whose numbers did not fit their
        units were asked again: the answers that did not fit count for nothing.
    """

    def __init__(self, plan: Agreement, exchanges: Sequence[Exchange]) -> None:
        self.plan, keys = plan, roster(plan)
        self._answers: dict[bytes, tuple[Question, Units, Words, dict[str, Words]]] = {}
        #: what the sites have divided their columns by, in the messages that they have answered
        self.scales: Array | None = None
        for number, (message, replies) in enumerate(exchanges):
            asked = unseal_round(message, plan)
            if number and not _same(asked.scales, self.scales):
                raise FederatedError("scales", "the sites have answered with columns divided by different numbers")
            self.scales = asked.scales
            if set(replies) != set(keys):
                raise FederatedError("replies", f"there are replies of {sorted(replies)}, the plan has {sorted(keys)}")
            words = {site: unseal_words(reply, asked, site, keys[site]) for site, reply in replies.items()}
            total = total_words(asked, words, plan.n_features)
            own = {site: total_words(asked, {site: one}, plan.n_features) for site, one in words.items()}
            for i, question in enumerate(asked.questions):
                if question.kind == "part" and not misfits(total[i]).any():
                    sites = {site: parts[i] for site, parts in own.items()}
                    self._answers[question.digest()] = question, asked.units[i], total[i], sites

    def questions(self) -> list[Question]:
        """All that were answered, in the order in which they were."""
        return [answer[0] for answer in self._answers.values()]

    def arrays(
        self, questions: Sequence[Question], free: Array, column_scale: Array | None, site: str | None = None
    ) -> dict[str, Array]:
        """What sites have agreed on, and the words of one site or of all together, as arrays of the format."""
        if any(question.problem != "all" for question in questions):
            raise FederatedError("part", "a statement is about all rows, and here is a question about some of them")
        missing = [k for k, question in enumerate(questions) if question.digest() not in self._answers]
        if missing:
            raise FederatedError("part", f"no site has signed an answer to question {missing[0]}")
        found = [self._answers[question.digest()] for question in questions]
        units = [answer[1] for answer in found]
        words = [answer[2] if site is None else answer[3][site] for answer in found]
        agreed = agreed_arrays(questions, units, free, column_scale)
        n_sites = len(self.plan.sites) if site is None else 1
        return {**agreed, **added_words(words, questions, self.plan.n_features, n_sites)}


def _same(one: Array | None, other: Array | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def loss_form(plan: Any) -> dict[str, Any]:
    """The loss of a plan in the words of the format; where sites have their own, each of them."""
    if not plan.mixed:
        return dict(form_of(plan.make_loss()))
    losses = {site: dict(form_of(plan.at(site).make_loss())) for site in sorted(plan.sites)}
    return {"name": "by-site", "losses": losses}


def make_statement(
    plan: Agreement,
    exchanges: Sequence[Exchange],
    questions: Sequence[Question],
    *,
    problem: Mapping[str, Any],
    alpha: Any,
    ridge: Any = 0.0,
    unit: float = 1.0,
    feature_weights: Any = None,
    column_scale: Array | None = None,
    names: Sequence[str] | None = None,
) -> tuple[Archive, dict[str, Archive]]:
    """The statement of some values of a path, and the halves of the sites if answers were open.

    Parameters
    ----------
    plan : Agreement
    exchanges : sequence
        `Asking.strict`.
    questions : sequence of Question
        Of kind "part", about all features, one a value.
    problem : mapping
        ``loss`` (`loss_form`), ``intercept`` and ``standardize`` ("no", "task", "pooled").
    alpha, ridge : float or array of shape (K,)
        Strengths of the values.
    unit : float
        N.
    feature_weights : array of shape (d,), optional
        u, 0 for features that are never penalised.
    column_scale : array of shape (d,), optional
        With pooled standardisation: what the columns of all sites are divided by.
    names : sequence of str, optional
        Of the features; by default the plan's columns.
    """
    signed, names = SignedSums(plan, exchanges), getattr(plan, "columns", None) if names is None else names
    weights = np.ones(plan.n_features) if feature_weights is None else np.array(feature_weights, dtype=np.float64)
    free = np.flatnonzero(weights == 0.0)
    arrays = signed.arrays(questions, free, column_scale)
    listed = None if names is None else [str(name) for name in names]
    common = {"n_features": int(plan.n_features), "names": verify.names_digest(listed), "problem": dict(problem)}
    halves = {}
    for site in () if plan.masked else sorted(plan.sites):
        header = {"format": "tasksieve-certificate-half", "version": verify.VERSION, "site": site, **common}
        header["problem"] = verify.problem_of_site(dict(problem), site)
        read = verify.read_half((json.loads(json.dumps(header)), signed.arrays(questions, free, column_scale, site)))
        halves[site] = Archive(read.header, read.arrays)
    stated: dict[str, Any] = {
        "format": "tasksieve-statement",
        "version": verify.VERSION,
        "unit": float(unit),
        **common,
        "sites": [_named(site, halves) for site in sorted(plan.sites)],
        "masked": bool(plan.masked),
        **({} if listed is None else {"features": listed}),
    }
    zeros = np.zeros(len(questions))
    arrays |= {"alpha": zeros + alpha, "ridge": zeros + ridge, "feature_weights": weights, **_messages(exchanges)}
    places = {question.digest(): i for i, question in enumerate(signed.questions())}
    arrays["answered"] = np.array([places[question.digest()] for question in questions], dtype=np.int64)
    return state(stated, arrays), halves


def _named(site: str, halves: Mapping[str, Archive]) -> dict[str, str]:
    found = {"name": site}
    return found | {"half": hashlib.sha256(halves[site].to_bytes()).hexdigest()} if halves else found


def _messages(exchanges: Sequence[Exchange]) -> dict[str, Array]:
    """For each exchange the message and its replies, in the order of the sites' names."""
    pieces = [piece for message, replies in exchanges for piece in (message, *(replies[s] for s in sorted(replies)))]
    starts = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
    return {"message": np.frombuffer(b"".join(pieces), dtype=np.uint8), "message_start": starts}


def state(header: dict[str, Any], arrays: dict[str, Array]) -> Archive:
    """The statement with the claims that its sums prove: found by the verifier, a little wider than found here."""
    n_values = len(arrays["l1"])
    arrays = {**arrays, **{name: np.zeros(n_values) for name in ("objective", "dual_value", "gap")}}
    try:
        stated = verify.Statement(json.loads(json.dumps(header)), arrays)
        for k in range(n_values):
            with np.errstate(all="ignore"):
                primal, dual, _ = verify.statement_bounds(stated, verify.Floating(), k)
            width = 2.0 * float((primal.hi - primal.lo) + (dual.hi - dual.lo)) + 2.0**-1000
            gap = max(float(primal.hi - dual.lo), 0.0) * _WIDER + width
            if not np.isfinite(gap):
                raise FederatedError("part", f"value {k}: objective and dual value leave the range of doubles")
            arrays["gap"][k], arrays["objective"][k] = gap, float(primal.hi)
            arrays["dual_value"][k] = float(dual.lo) - width
    except (verify.Unreadable, verify.Mismatch, verify.Undecided) as error:
        raise FederatedError("part", str(error)) from None
    return Archive(header, arrays)


def check_signatures(statement: Any, plan: Agreement) -> None:
    """Refuse a statement whose sums are not those of words that all sites of a plan have signed.

    Parameters
    ----------
    statement : path, bytes or verify.Statement
    plan : Agreement
        The plan as the reader knows it: it names the sites and their keys.
    """
    read = verify.read_statement(statement)
    arrays, sites = read.arrays, sorted(plan.sites)
    if [one["name"] for one in read.header["sites"]] != sites or read.header["masked"] != bool(plan.masked):
        raise FederatedError("plan", "the statement has other sites than the plan, or is masked where that is not")
    if read.sums.n_features != plan.n_features:
        raise FederatedError("plan", "the statement has another number of features than the plan")
    for key, wanted in (("intercept", "fit_intercept"), ("standardize", "standardize")):
        if hasattr(plan, wanted) and read.header["problem"][key] != getattr(plan, wanted):
            raise FederatedError("plan", f"the statement's {key} is not that of the plan")
    if hasattr(plan, "make_loss"):
        loss = loss_form(plan)
        verify.check_losses(loss, sites)
        if read.header["problem"]["loss"] != loss:
            raise FederatedError("plan", "the statement's loss is not that of the plan")
    if hasattr(plan, "columns") and read.header["names"] != verify.names_digest(list(plan.columns)):
        raise FederatedError("plan", "the statement's features are not those of the plan")
    if hasattr(plan, "weights") and not np.array_equal(arrays["feature_weights"], plan.weights):
        raise FederatedError("plan", "the statement's feature weights are not those of the plan")
    if hasattr(plan, "ridge") and not np.array_equal(arrays["ridge"], np.full(len(arrays["l1"]), plan.ridge)):
        raise FederatedError("plan", "the statement's ridge is not that of the plan")
    if hasattr(plan, "l1_ratio"):  # products in another order: the same but for rounding
        entries = plan.l1_ratio * arrays["alpha"] * read.header["unit"]
        if (np.abs(arrays["l1"] - entries) > 1e-9 * entries).any():
            raise FederatedError("plan", "the statement's strength on single coefficients is not that of the plan")
    if "message" not in arrays:
        raise FederatedError("signature", "the statement has no messages that sites have signed")
    raw, starts = arrays["message"].tobytes(), arrays["message_start"].tolist()
    pieces = [raw[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
    each = 1 + len(sites)
    if not pieces or len(pieces) % each:
        raise FederatedError("replies", "the statement does not have a reply of each site to each message")
    exchanges = [(pieces[i], dict(zip(sites, pieces[i + 1 : i + each], strict=True)))
                 for i in range(0, len(pieces), each)]  # fmt: skip
    signed = SignedSums(plan, exchanges)
    if hasattr(plan, "standardize") and not _same(signed.scales, arrays.get("column_scale")):
        raise FederatedError("sums", "the statement's scales of columns are not those that the sites were given")
    questions = signed.questions()
    if arrays["answered"].max() >= len(questions):
        raise FederatedError("sums", "a value of the statement is about no question that the sites have answered")
    found = [questions[i] for i in arrays["answered"].tolist()]
    rebuilt = signed.arrays(found, arrays["free"], arrays.get("column_scale"))
    for name, words in rebuilt.items():
        if not np.array_equal(words, arrays[name]):
            raise FederatedError("sums", f"array {name!r} of the statement is not what the sites have signed")
