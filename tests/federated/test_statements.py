"""Sums over sites that prove the gap of the pooled model: what was altered, is missing, re-signed or replayed is not
accepted."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tasksieve as ts
from tasksieve import verify
from tasksieve.federated.asking import Asking
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.local import LocalProblem
from tasksieve.federated.messages import seal_words, unseal_round, unseal_words
from tasksieve.federated.node import SiteNode
from tasksieve.federated.part import Archive, published_half
from tasksieve.federated.plan import Plan
from tasksieve.federated.question import Question
from tasksieve.federated.statement import SignedSums, check_signatures, make_statement, state
from tasksieve.losses import as_loss
from tasksieve.tasks import read_tasks

keys = pytest.importorskip("tasksieve.federated.keys")
pytest.importorskip("cryptography")

D, N, NAMES = 15, 20, ("east", "north", "west")
ALPHAS = np.array([0.2, 0.1])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(N + 2 * t, D)) for t in range(3)]
    y = [x[:, 0] * (1 + t) - x[:, 1] + 0.5 * rng.normal(size=len(x)) + 3 for t, x in enumerate(X)]
    return X, y


def run(data, folder, *, masked=True, loss="squared", l1=0.0, ridge=0.0, weights=None, plan_of=None, **options):
    """A federated certificate at the pooled solution: statement, halves, and all that it was made from."""
    X, y = data
    pooled_weights = np.ones(D) if weights is None else weights
    unit = float(np.mean([len(v) for v in y]))
    private = {name: keys.PrivateKeys.create() for name in (*NAMES, "coordinator")}
    lines = {name: private[name].public(hashlib.sha256(v).digest()).line() for name, v in zip(NAMES, y, strict=True)}
    plan = SimpleNamespace(
        digest=hashlib.sha256(repr(sorted(lines.items())).encode()).digest(), masked=masked, n_features=D, sites=lines,
        coordinator=private["coordinator"].public().line(),
    )  # fmt: skip
    if plan_of is not None:
        plan = plan_of(lines, plan.coordinator)
    targets = "classes" if loss == "logistic" else "values"
    free = np.flatnonzero(pooled_weights == 0.0)
    locals_ = {
        name: LocalProblem(read_tasks([x], [v], targets=targets), loss, unpenalised=free, **options)
        for name, x, v in zip(NAMES, X, y, strict=True)
    }
    nodes = {
        name: SiteNode(name, private[name], plan, locals_[name], hashlib.sha256(v).digest(), folder / name)
        for name, v in zip(NAMES, y, strict=True)
    }
    transport = SimpleNamespace(exchange=lambda message: {name: node.reply(message) for name, node in nodes.items()})
    asking = Asking(plan, private["coordinator"], transport)
    questions, models = [], []
    for alpha in ALPHAS:
        given = {"alpha": alpha, "tol": 1e-10, "standardize": options.get("standardize") == "task"}
        given |= {"feature_weights": weights} if weights is not None else {}
        kind = ts.MultiTaskClassifier if loss == "logistic" else ts.MultiTaskRegressor
        given |= {} if loss == "logistic" else {"loss": loss}
        given |= {"ridge": ridge} if ridge else {}
        if l1:
            kind, given = ts.MultiTaskSparseGroupLasso, given | {"l1": l1, "group": 1.0}
        model = kind(**given).fit(X, y)
        models.append(model)
        norms = np.linalg.norm(model.coef_ * (1.0 if not given["standardize"] else _deviations(X)), axis=0)
        features = np.flatnonzero((norms > 0.0) & (pooled_weights > 0.0))
        lam = unit * alpha * pooled_weights[features]
        s = norms[features] / (lam + unit * ridge * norms[features])  # with a ridge s/(1 + ridge s)
        questions.append(Question(features=features, s=s, l1=unit * alpha * l1, kind="part", hessian=False))
    asking.ask(questions)
    problem = {"loss": as_loss(loss).certificate_form(), "intercept": True,
               "standardize": options.get("standardize", "no")}  # fmt: skip
    statement, halves = make_statement(
        plan, asking.strict, questions, problem=problem, alpha=ALPHAS, ridge=ridge, unit=unit,
        feature_weights=weights,
    )  # fmt: skip
    return SimpleNamespace(
        statement=statement, halves=halves, plan=plan, asking=asking, questions=questions, models=models,
        private=private, locals=locals_, nodes=nodes, problem=problem, unit=unit,
    )  # fmt: skip


def _deviations(X):
    return np.stack([x.std(axis=0) for x in X])


@pytest.fixture(scope="module")
def masked(data, tmp_path_factory):
    return run(data, tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def open_(data, tmp_path_factory):
    return run(data, tmp_path_factory.mktemp("open"), masked=False)


def raw(halves):
    return [half.to_bytes() for half in halves.values()]


def test_masked_and_open_statements_are_the_same_sums_and_prove_the_gap(masked, open_, data):
    for name in (*verify.AGREED, *verify.WORDS, "gap", "objective", "dual_value"):
        if name != "column_scale":
            np.testing.assert_array_equal(masked.statement.arrays[name], open_.statement.arrays[name])
    for exact in (False, True):
        assert verify.verify_statement(masked.statement.to_bytes(), exact=exact)
        found = verify.verify_statement(open_.statement.to_bytes(), raw(open_.halves), exact=exact)
        assert found, found.words
        assert "none of 2 models can be better by more than" in found.words
    assert "checked by tasksieve verify" in verify.verify_statement(masked.statement.to_bytes()).words
    for run_ in (masked, open_):
        check_signatures(run_.statement.to_bytes(), run_.plan)
        for k, model in enumerate(run_.models):
            gap, objective = run_.statement.arrays["gap"][k], run_.statement.arrays["objective"][k]
            assert model.objective_ - model.dual_gap_ - gap - 1e-12 <= objective <= model.objective_ + gap + 1e-12
            assert gap < 1e-7


def test_every_site_proves_its_half(open_, masked, data):
    for run_ in (open_, masked):
        (message, _), = run_.asking.strict  # fmt: skip
        asked = unseal_round(message, run_.plan)
        for name, x, y in zip(NAMES, *data, strict=True):
            part = run_.locals[name].part(name, run_.private[name].salt, asked.questions, asked.units)
            assert verify.verify_part(part.to_bytes(), [x], [y])
            if run_ is open_:
                assert published_half(part).to_bytes() == run_.halves[name].to_bytes()


@pytest.mark.parametrize(
    "options",
    [
        {"ridge": 0.3}, {"l1": 0.4},
        pytest.param({"weights": np.array([1.0, 2.0, 0.5, *[1.0] * (D - 4), 0.0])}, marks=pytest.mark.slow),
        pytest.param({"standardize": "task"}, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_ridge_entries_weights_scales(data, tmp_path, options):
    found = run(data, tmp_path, **options)
    for exact in (False, True):
        verdict = verify.verify_statement(found.statement.to_bytes(), exact=exact)
        assert verdict, verdict.words
    for k, model in enumerate(found.models):
        gap, objective = found.statement.arrays["gap"][k], found.statement.arrays["objective"][k]
        assert gap < 1e-5 * model.objective_
        assert abs(objective - model.objective_) <= gap + model.dual_gap_ + 1e-12


def test_classes(data, tmp_path):
    X, y = data
    found = run((X, [np.where(v > 3.0, 1, -1) for v in y]), tmp_path, loss="logistic")
    assert verify.verify_statement(found.statement.to_bytes(), exact=True)
    for k, model in enumerate(found.models):
        gap, objective = found.statement.arrays["gap"][k], found.statement.arrays["objective"][k]
        assert gap < 1e-5
        assert abs(objective - model.objective_) <= gap + model.dual_gap_ + 1e-12


# --- forgeries ----------------------------------------------------------------------------------------------


def changed(archive, header=None, **arrays):
    return Archive({**archive.header, **(header or {})}, {**archive.arrays, **arrays})


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("gap", lambda v: v * 0.999, "the gap is proved"),
        ("dual_value", lambda v: v + 1e-5, "the dual value is proved"),
        ("objective", lambda v: v + 1e-5, "the claimed objective may exceed"),
        ("objective", lambda v: v - 1e-5, "the objective may exceed the claimed one"),
        ("alpha", lambda v: v * 0.999, "proved"),
        ("feature_weights", lambda v: v * 0.999, "proved"),
        ("c2", lambda v: v + (v.max() >> 8), "proved"),
        ("w2", lambda v: v + (v >> 8) + 1000, "proved"),
        ("loss", lambda v: v + (v >> 20), "proved"),
        ("gain", lambda v: v - (np.abs(v) >> 20), "proved"),
        ("c2", lambda v: v * 5, "no dual value"),
    ],
)
def test_a_claim_that_the_sums_do_not_prove_is_refused(masked, name, change, words, exact):
    forged = changed(masked.statement, **{name: change(masked.statement.arrays[name])})
    found = verify.verify_statement(forged.to_bytes(), exact=exact)
    assert not found
    assert words in found.words


def test_altered_halves_are_refused(open_):
    statement, halves = open_.statement, open_.halves

    def refused(sources, words, stated=statement):
        found = verify.verify_statement(stated.to_bytes(), sources)
        assert not found
        assert words in found.words

    good = raw(halves)
    refused(good[:2], "the half of site 'west' is missing")
    refused([*good, good[0]], "two halves of site 'east'")
    refused([*good[:2], changed(halves["west"], {"site": "south"}).to_bytes()], "not in the statement")
    for name in verify.WORDS:
        words = halves["north"].arrays[name].copy()
        words.reshape(-1)[0] += 1 if name != "gain" else -1
        half = changed(halves["north"], **{name: words})
        forged = [good[0], half.to_bytes(), good[2]]
        refused(forged, "its digest differs")
        sites = [dict(one) for one in statement.header["sites"]]
        sites[1]["half"] = hashlib.sha256(half.to_bytes()).hexdigest()
        refused(forged, f"array {name!r} of the halves does not add up", changed(statement, {"sites": sites}))
    for key, value in (("l1", np.array([1.0, 1.0])), ("scale", statement.arrays["scale"] * 0.5)):
        half = changed(halves["north"], **{key: value})
        sites = [dict(one) for one in statement.header["sites"]]
        sites[1]["half"] = hashlib.sha256(half.to_bytes()).hexdigest()
        refused([good[0], half.to_bytes(), good[2]], "differs from the statement", changed(statement, {"sites": sites}))


def test_a_half_that_lies_is_refused_by_its_rows(open_, data):
    """Half and statement altered alike add up; the site's own rows, or an auditor's, refuse it."""
    (message, _), = open_.asking.strict  # fmt: skip
    asked = unseal_round(message, open_.plan)
    part = open_.locals["north"].part("north", open_.private["north"].salt, asked.questions, asked.units)
    words = part.arrays["gain"] + (np.abs(part.arrays["gain"]) >> 10)
    lying = changed(part, gain=words)
    half = published_half(lying)
    halves = {**open_.halves, "north": half}
    header = {**open_.statement.header, "sites": [dict(one) for one in open_.statement.header["sites"]]}
    header["sites"][1]["half"] = hashlib.sha256(half.to_bytes()).hexdigest()
    gain = open_.statement.arrays["gain"] + words - part.arrays["gain"]
    forged = state(header, {**open_.statement.arrays, "gain": gain})
    assert verify.verify_statement(forged.to_bytes(), raw(halves))  # a premise that is false
    assert not verify.verify_part(lying.to_bytes(), [data[0][1]], [data[1][1]])
    with pytest.raises(FederatedError, match="not what the sites have signed"):
        check_signatures(forged.to_bytes(), open_.plan)


def exchanges(run_):
    return [(message, dict(replies)) for message, replies in run_.asking.strict]


def restated(run_, changed_exchanges):
    return make_statement(
        run_.plan, changed_exchanges, run_.questions, problem=run_.problem, alpha=ALPHAS, unit=run_.unit
    )[0]


@pytest.mark.parametrize("which", ["masked", "open_"])
def test_altered_missing_resigned_replayed_words_are_refused(which, request, tmp_path, data):
    run_ = request.getfixturevalue(which)
    ((message, replies),) = exchanges(run_)
    asked = unseal_round(message, run_.plan)

    def refused(rule, answers, said=message):
        with pytest.raises(FederatedError) as error:
            restated(run_, [(said, answers)])
        assert error.value.rule == rule
        # and put into the statement itself, as it was
        pieces = [said, *(answers.get(name, b"") for name in NAMES)]
        starts = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
        forged = changed(
            run_.statement, message=np.frombuffer(b"".join(pieces), dtype=np.uint8), message_start=starts
        )
        with pytest.raises(FederatedError):
            check_signatures(forged.to_bytes(), run_.plan)

    for place in (0, 40, len(replies["north"]) - 3):
        altered = bytearray(replies["north"])
        altered[place] ^= 1
        refused("signature", {**replies, "north": bytes(altered)})
    refused("replies", {name: replies[name] for name in NAMES[:2]})
    refused("signature", {**replies, "north": replies["west"]})
    words = unseal_words(replies["north"], asked, "north", run_.private["north"].public())
    other = keys.PrivateKeys.create()
    refused("signature", {**replies, "north": seal_words(words, asked, "north", other)})
    later = dataclasses.replace(asked, number=asked.number + 1)
    refused("replay", {**replies, "north": seal_words(words, later, "north", run_.private["north"])})
    altered = bytearray(message)
    altered[-1] ^= 1
    refused("signature", replies, bytes(altered))


def test_a_site_that_signs_other_words_is_seen_in_the_sums(masked):
    """Under masks a changed word is a changed sum: what the statement says is not what was signed."""
    ((message, replies),) = exchanges(masked)
    asked = unseal_round(message, masked.plan)
    words = unseal_words(replies["north"], asked, "north", masked.private["north"].public())
    words.long[5] += np.uint64(1)
    resigned = {**replies, "north": seal_words(words, asked, "north", masked.private["north"])}
    pieces = [message, *(resigned[name] for name in NAMES)]
    starts = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
    forged = changed(masked.statement, message=np.frombuffer(b"".join(pieces), dtype=np.uint8), message_start=starts)
    with pytest.raises(FederatedError, match="not what the sites have signed"):
        check_signatures(forged.to_bytes(), masked.plan)


def test_statements_of_another_plan_are_refused(masked, open_):
    with pytest.raises(FederatedError):
        check_signatures(masked.statement.to_bytes(), open_.plan)
    with pytest.raises(FederatedError, match="feature weights"):
        plan = SimpleNamespace(**vars(masked.plan), weights=np.full(D, 2.0))
        check_signatures(masked.statement.to_bytes(), plan)
    with pytest.raises(FederatedError, match="intercept"):
        plan = SimpleNamespace(**vars(masked.plan), fit_intercept=False)
        check_signatures(masked.statement.to_bytes(), plan)
    bare = Archive(masked.statement.header, {name: array for name, array in masked.statement.arrays.items()
                                             if name not in ("message", "message_start", "answered")})  # fmt: skip
    assert verify.verify_statement(bare.to_bytes())
    with pytest.raises(FederatedError, match="no messages"):
        check_signatures(bare.to_bytes(), masked.plan)


def test_signed_sums_know_what_was_answered(masked):
    signed = SignedSums(masked.plan, masked.asking.strict)
    assert [q.digest() for q in signed.questions()] == [q.digest() for q in masked.questions]
    with pytest.raises(FederatedError, match="no site has signed"):
        signed.arrays([Question(kind="part")], np.arange(0), None)


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"format": "tasksieve-certificate-half"}, {}), ({"version": 2}, {}), ({"unit": 0.0}, {}),
        ({"sites": []}, {}), ({"sites": [{"name": "a"}, {"name": "a"}]}, {}), ({"masked": 1}, {}), ({"more": 1}, {}),
        ({"masked": False}, {}), ({"features": ["a"]}, {}),
        ({"problem": {"loss": {"name": "logistic"}, "intercept": True}}, {}),
        ({}, {"alpha": np.zeros(2)}), ({}, {"c2": np.full((2, D), -1)}), ({}, {"w2": np.zeros(1)}),
        ({}, {"loss": np.full(2, (1 << 62) + 1)}), ({}, {"free": np.array([3])}),
        ({}, {"feature_weights": np.zeros(D)}), ({}, {"ridge": np.full(2, -1.0)}),
        ({}, {"column_scale": np.ones(D)}), ({}, {"message_start": np.array([0, 3])}),
        ({}, {"answered": np.array([-1, 0])}),
    ],
)  # fmt: skip
def test_statements_that_make_no_sense_cannot_be_read(masked, header, arrays):
    with pytest.raises(verify.Unreadable):
        verify.read_statement(changed(masked.statement, header, **arrays).to_bytes())


def test_tasksieve_verify_of_parts_and_statements(data, tmp_path, cli):
    def plan_of(lines, coordinator):
        names = [f"x{j}" for j in range(D)]
        return Plan("Three sites", lines, names, coordinator=coordinator, standardize="no", loss="squared")

    found = run(data, tmp_path / "log", plan_of=plan_of)
    (tmp_path / "plan.toml").write_text(found.plan.to_toml(), encoding="utf-8")
    found.statement.save(tmp_path / "statement.npz")
    (message, _), = found.asking.strict  # fmt: skip
    asked = unseal_round(message, found.plan)
    found.locals["north"].part("north", bytes(32), asked.questions, asked.units).save(tmp_path / "part.npz")
    np.savez(tmp_path / "rows.npz", X=data[0][1], y=data[1][1])

    def told(*words):
        files = [tmp_path / one if one.endswith(("npz", "toml")) else one for one in words]
        found = cli("verify", *files, code=None)
        return found.code, found

    code, said = told("statement.npz", "--plan", "plan.toml")
    assert code == 0
    assert "signed by all 3 sites" in said.out
    assert told("part.npz", "--data", "rows.npz", "--exact")[0] == 0
    assert told("statement.npz")[0] == told("part.npz")[0] == 2
    (tmp_path / "other.toml").write_text(dataclasses.replace(found.plan, loss="huber").to_toml(), encoding="utf-8")
    code, said = told("statement.npz", "--plan", "other.toml")
    assert code == 1
    assert "the statement's loss is not that of the plan" in said.out
    changed(found.statement, loss=found.statement.arrays["loss"] - 1).save(tmp_path / "statement.npz")
    code, said = told("statement.npz", "--plan", "plan.toml")
    assert code == 1
    assert "not what the sites have signed" in said.out


def test_one_file_of_the_verifier_checks_parts_and_statements(open_, data, tmp_path):
    shutil.copy(Path(verify.__file__), tmp_path / "verify.py")
    (message, _), = open_.asking.strict  # fmt: skip
    asked = unseal_round(message, open_.plan)
    part = open_.locals["north"].part("north", open_.private["north"].salt, asked.questions, asked.units)
    part.save(tmp_path / "certificate-part.npz")
    open_.statement.save(tmp_path / "statement.npz")
    np.savez(tmp_path / "rows.npz", X=data[0][1], y=data[1][1])
    for name, half in open_.halves.items():
        half.save(tmp_path / f"{name}.npz")

    def told(*arguments):
        command = [sys.executable, "-I", "verify.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    files = [f"{name}.npz" for name in NAMES]
    found = told("statement", "statement.npz", *files)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("proved: none of 2 models can be better by more than ")
    assert told("statement", "statement.npz", *files[:2]).returncode == 1
    assert told("statement", "certificate-part.npz").returncode == 2
    found = told("part", "certificate-part.npz", "rows.npz", "--value", "1")
    assert (found.returncode, found.stderr) == (0, "")
    assert "1 value" in found.stdout
    np.savez(tmp_path / "rows.npz", X=data[0][1], y=data[1][1] + 1.0)
    assert told("part", "certificate-part.npz", "rows.npz").returncode == 1
