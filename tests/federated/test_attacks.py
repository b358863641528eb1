"""What a coordinator, a site or somebody on the way could try: nothing is learned of one site, nothing is forged.

Where something hides numbers, the test is run without it, too, and must then find them: else it could not fail.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from federated_sites import Federation, federation, fixed_keys, rows

pytest.importorskip("cryptography")
from federated.site_tables import FEATURES, NAMES, Tables, make, transport

from tasksieve.federated import messages, node
from tasksieve.federated.answer import DUAL, NO_DUAL, counts, from_words, misfits, to_words
from tasksieve.federated.answer_log import AnswerLog
from tasksieve.federated.asking import Asking, total_words
from tasksieve.federated.certify import part_of, state
from tasksieve.federated.errors import FederatedError
from tasksieve.federated.fitting import fit
from tasksieve.federated.keys import roster
from tasksieve.federated.messages import seal_refusal, seal_round, unseal_words
from tasksieve.federated.policy import Rules
from tasksieve.federated.question import Question, Round
from tasksieve.federated.site import LOG, PLAN, Site
from tasksieve.federated.statement import check_signatures
from tasksieve.federated.transport import InProcess, SiteRefused
from tasksieve.federated.units import Sizes

POINT = Question(features=[0, 3], s=[0.2, 0.05])


def rule(call, *given):
    with pytest.raises(FederatedError) as error:
        call(*given)
    return error.value.rule


def units_of(question, **more):
    found = Sizes(3, total=8, level=8, norm=4).units(question.features, question.s, 0.0)
    return replace(found, **more)


def asked_by(sites, question, units, number=1):
    """The round, and what each site says to it."""
    asked = Round(number, sites.plan.digest, (question,), (units,))
    known, sealed = roster(sites.plan), seal_round(asked, sites.keys["coordinator"])
    words = {name: unseal_words(site.reply(sealed), asked, name, known[name]) for name, site in sites.nodes.items()}
    return asked, words


def total(asked, words):
    (found,) = total_words(asked, words, 6)
    return found


# --- a coordinator that wants the numbers of one site ---------------------------------------------------------------


def test_no_smaller_group_of_sites_has_a_sum(tmp_path):
    sites = federation(tmp_path, 4)
    asked, words = asked_by(sites, POINT, replace(units_of(POINT), sites=4))
    from_words(total(asked, words), POINT, asked.units[0], 6)
    for n in (1, 2, 3):
        for group in combinations(words, n):
            part = total(asked, {name: words[name] for name in group})
            with pytest.raises(FederatedError, match="add up"):
                from_words(part, POINT, replace(asked.units[0], sites=4), 6)
            assert part.long[0] != n  # not even the count of those who have answered


@pytest.mark.parametrize("change", ["number", "question", "units", "order"])
def test_rounds_that_differ_in_anything_have_other_masks(tmp_path, change):
    """A site that is asked a little otherwise than the others sends words that cancel with nobody's."""
    sites = federation(tmp_path)
    first, second = POINT, replace(POINT, l1=0.5)
    pair, units = (first, second), (units_of(first), units_of(second))
    one = Round(1, sites.plan.digest, pair, units)
    other = {
        "number": replace(one, number=2),
        "question": replace(one, questions=(first, replace(second, reach=1.0))),
        "units": replace(one, units=(units[0], units[1].larger("levels"))),
        "order": replace(one, questions=pair[::-1], units=units[::-1]),
    }[change]
    known = roster(sites.plan)

    def said(name, asked):
        reply = sites.nodes[name].reply(seal_round(asked, sites.keys["coordinator"]))
        return unseal_words(reply, asked, name, known[name])

    fair = [said(name, one) for name in sites.nodes]
    mixed = [said(name, other if name == "east" else one) for name in sites.nodes]
    assert (fair[0] + fair[1] + fair[2]).long[0] == 3
    assert (mixed[0] + mixed[1] + mixed[2]).long[0] != 3
    east = list(sites.nodes).index("east")
    assert (mixed[east].long != fair[east].long).all()  # no word has the mask of another round


@pytest.mark.parametrize("kind", ["norms", "point", "part"])
def test_no_site_refuses_because_its_own_numbers_are_large(tmp_path, kind):
    """Units that are too small for one site: a refusal would have its name on it. Instead all answers are noise."""
    local = {"north": rows(1), "east": rows(2), "south": rows(3)}
    local["north"].X = 1e6 * local["north"].X
    question = replace(POINT, kind=kind, hessian=False)
    sites = Federation(local, tmp_path)
    asked, words = asked_by(sites, question, units_of(question, norms=16 * 4 - 60))
    assert misfits(total(asked, words)).any()
    own = [to_words(site.answer(question), question, asked.units[0], 6) for site in local.values()]
    assert [bool(misfits(one).any()) for one in own] == [True, False, False]


def no_dual(site):
    """A site that has no dual value at a point."""
    right = site.answer

    def answer(question):
        found = right(question)
        return replace(found, dual=np.where(np.arange(29) < 2, -np.inf, found.dual)) if question.s.any() else found

    site.answer = answer
    return site


@pytest.mark.parametrize("hidden", [True, False])
def test_a_site_without_a_dual_value_does_not_show_those_of_the_others(tmp_path, monkeypatch, hidden):
    if not hidden:
        monkeypatch.setattr(node, "no_dual_hidden", lambda words, secret, context: words)
    local = {"north": no_dual(rows(1)), "east": rows(2), "south": rows(3)}
    sites = Federation(local, tmp_path)
    asked, words = asked_by(sites, POINT, units_of(POINT))
    found = total(asked, words)
    others = [to_words(local[name].answer(POINT), POINT, asked.units[0], 6) for name in ("east", "south")]
    shown = found.long[DUAL] == (others[0] + others[1]).long[DUAL]
    assert shown.all() == (not hidden)
    assert np.isneginf(from_words(found, POINT, asked.units[0], 6).dual).all()
    if hidden:
        assert not shown.any()
        assert found.long[NO_DUAL] > 2**32  # noise, no count


def test_numbers_beyond_any_use_are_not_asked_about():
    """Whether their products overflow would tell how large one site's columns are."""
    Question(features=[0], s=[1e120], l1=1e100)
    for wrong in ({"features": [0], "s": [1e121]}, {"l1": 1e121}, {"l1": 10**400}):
        with pytest.raises((FederatedError, OverflowError)):
            Question(**wrong)
    for scale in (0.0, 5e-324, 1e-100, 1e100, np.inf, np.nan):
        with pytest.raises(FederatedError, match="scales of columns"):
            Round(0, bytes(32), (POINT,), (units_of(POINT),), np.array([1.0, scale]))


def test_a_question_that_would_fill_the_memory_is_refused(tmp_path):
    sites = federation(tmp_path)
    sites.plan.n_features = 40_000
    question = Question(features=np.arange(40_000), s=np.ones(40_000))
    assert 4 * counts(question, 40_000)[1] > 1 << 30
    site = sites.node("north")
    asked = Round(0, sites.plan.digest, (question,), (replace(units_of(question), sites=3),))
    assert rule(site.reply, seal_round(asked, sites.keys["coordinator"])) == "length"
    assert not site.local.asked


def test_refusals_do_not_tell_how_many_rows_a_site_has():
    held = {"all": (37,)}
    for rules, masked in ((Rules(masked_share=0.5), True), (Rules(open=True), False)):
        question = Question(features=np.arange(30), s=np.ones(30))
        with pytest.raises(FederatedError, match="second derivatives of 30 features") as error:
            rules.check_questions(_Plan(masked), [question], 0, held)
        assert "37" not in str(error.value)


class _Plan:
    def __init__(self, masked):
        self.masked = masked

    def problems(self):
        return ["all"]


# --- somebody on the way ---------------------------------------------------------------------------------------------


class Refusing:
    """A transport that brings a refusal in the name of east."""

    def __init__(self, sites, signed):
        self.sites, self.signed = sites, signed

    def exchange(self, message):
        raise SiteRefused("east", "max-questions", "\x1b[2Jenough", self.signed(message))


def refusal(by, of=None, site="east"):
    error = FederatedError("max-questions", "\x1b[2Jenough")
    return lambda message: seal_refusal(error, message if of is None else of, site, fixed_keys(by))


def test_only_a_site_refuses_in_its_name(tmp_path):
    sites = federation(tmp_path)
    forged = {
        "nobody": lambda message: b"",
        "no message": lambda message: bytes(200),
        "another site": refusal("north"),
        "in the name of another": refusal("east", site="north"),
        "of another question": refusal("east", of=b"another question"),
        "altered": lambda message: refusal("east")(message).replace(b"enough", b"unfair"),
        "an answer": lambda message: sites.nodes["east"].reply(message),
    }
    for name, signed in forged.items():
        asking = Asking(sites.plan, sites.keys["coordinator"], Refusing(sites, signed))
        assert rule(asking.ask, [POINT]) == "signature", name
    asking = Asking(sites.plan, sites.keys["coordinator"], Refusing(sites, refusal("east")))
    with pytest.raises(SiteRefused, match=r"^max-questions: site east refuses: \?\[2Jenough$"):
        asking.ask([POINT])


def test_what_a_site_refuses_it_signs(tmp_path):
    """Rules, damaged messages and failures alike: all arrive as the site's own."""
    sites = federation(tmp_path)

    def allow(questions, answered):
        raise FederatedError("max-questions", "none are answered")

    sites.nodes["east"] = sites.node("east", allow=allow)
    with pytest.raises(FederatedError) as error:
        sites.nodes["east"].reply(b"no message at all")
    assert (error.value.rule, len(error.value.signed) > 64) == ("format", True)
    asking = Asking(sites.plan, sites.keys["coordinator"], InProcess({n: s.reply for n, s in sites.nodes.items()}))
    with pytest.raises(SiteRefused, match=r"^max-questions: site east refuses: none are answered$"):
        asking.ask([POINT])


def test_other_versions_are_refused(tmp_path, monkeypatch):
    """A coordinator of another version, a site of another version, and its refusal."""
    sites = federation(tmp_path)
    current = messages.PROTOCOL
    monkeypatch.setattr(messages, "PROTOCOL", current + 1)
    newer = seal_round(Round(0, sites.plan.digest, (POINT,), (units_of(POINT),)), sites.keys["coordinator"])
    monkeypatch.setattr(messages, "PROTOCOL", current)
    assert rule(sites.nodes["north"].reply, newer) == "version"

    class Newer:
        def exchange(self, message):
            replies = sites.exchange(message)
            asked = messages.unseal_round(message, sites.plan)
            known = roster(sites.plan)["east"]
            words = unseal_words(replies["east"], asked, "east", known)
            monkeypatch.setattr(messages, "PROTOCOL", current + 1)
            replies["east"] = messages.seal_words(words, asked, "east", sites.keys["east"])
            monkeypatch.setattr(messages, "PROTOCOL", current)
            return replies

    asking = Asking(sites.plan, sites.keys["coordinator"], Newer())
    with pytest.raises(FederatedError, match=r"the reply of east is not used: .* another version") as error:
        asking.ask([POINT])
    assert error.value.rule == "version"

    def signed(message):
        monkeypatch.setattr(messages, "PROTOCOL", current + 1)
        found = refusal("east")(message)
        monkeypatch.setattr(messages, "PROTOCOL", current)
        return found

    assert rule(Asking(sites.plan, sites.keys["coordinator"], Refusing(sites, signed)).ask, [POINT]) == "version"


# --- plans and folders -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def agreed(tmp_path_factory):
    """(plan, keys of the coordinator, sites, result)"""
    plan, keys, sites = make(tmp_path_factory.mktemp("agreed"), Tables(), n_alphas=2, cv=2, units="mmol/L")
    return plan, keys, sites, fit(plan, transport(sites), keys)


@pytest.mark.parametrize(
    "other",
    [
        {"features": [FEATURES[1], FEATURES[0], *FEATURES[2:]]},
        {"features": [f"{name}_" for name in FEATURES]},
        {"units": "mg/dL"},
        {"units": ""},
    ],
)
def test_other_features_another_order_other_units_are_refused(agreed, other):
    """Sums cannot show it: names, their order and the words for units are part of every message."""
    plan, keys, sites, _ = agreed
    with pytest.raises(SiteRefused, match="another plan than the one that was agreed to") as error:
        fit(replace(plan, **other), transport(sites), keys)
    assert error.value.rule == "plan"


def test_columns_in_another_order_are_found_by_their_names(tmp_path):
    tables = Tables()
    (tmp_path / "one").mkdir()
    plan, _, sites = make(tmp_path / "one", tables, n_alphas=2)
    path = tmp_path / "one" / "north.csv"
    lines = [line.split(",") for line in path.read_text().splitlines()]
    order = np.random.default_rng(0).permutation(len(lines[0]))
    permuted = tmp_path / "permuted.csv"
    permuted.write_text("\n".join(",".join(line[k] for k in order) for line in lines) + "\n")
    other = Site.create(tmp_path / "other", "north", {"table": str(permuted), "target": "y"})
    with pytest.raises(FederatedError, match="keys: the line of north"):
        other.agree(plan)  # another file is another digest
    other.agree(replace(plan, sites={**plan.sites, "north": other.public_line()}))
    question = Question(features=np.arange(3), s=np.ones(3))
    np.testing.assert_array_equal(other.local.answer(question).levels, sites["north"].local.answer(question).levels)


def test_a_folder_that_has_answered_agrees_to_no_other_plan(agreed, tmp_path):
    """Not even when its plan is removed: sums of two plans with other sites differ by the numbers of one."""
    plan, _, sites, _ = agreed
    fewer = replace(plan, title="without the west, with another")
    folder = tmp_path / "north"
    shutil.copytree(sites["north"].folder, folder)
    site = Site(folder)
    assert rule(site.agree, fewer) == "plan"
    (folder / PLAN).unlink()
    assert rule(Site(folder).agree, fewer) == "plan"
    Site(folder).agree(plan)


def test_a_log_that_was_lost_is_noticed(agreed, tmp_path):
    plan, _, sites, _ = agreed
    folder = tmp_path / "north"
    shutil.copytree(sites["north"].folder, folder)
    before = Site(folder).answered()
    assert len(before) > 5
    for file in (folder / LOG).iterdir():
        file.unlink()
    for call in (lambda: Site(folder).node(), lambda: Site(folder).agree(plan), lambda: Site(folder).answered()):
        assert rule(call) == "log"


def test_questions_are_counted_over_restarts_and_repetitions(tmp_path):
    plan, keys, sites = make(tmp_path, Tables(), n_alphas=2, rules=Rules(max_questions=4))
    with pytest.raises(SiteRefused, match="max-questions"):
        fit(plan, transport(sites), keys)
    asked = {name: site.answered() for name, site in sites.items()}
    again = {name: Site(tmp_path / name) for name in NAMES}
    with pytest.raises(SiteRefused, match="max-questions"):
        fit(plan, transport(again), keys)
    assert {name: site.answered() for name, site in again.items()} == asked
    assert all(0 < len(own) <= 4 for own in asked.values())


def test_folds_that_leave_out_few_rows_are_refused(tmp_path):
    with pytest.raises(FederatedError, match=r"min-held-out: 'fold .*' leaves out 1 rows of a task"):
        make(tmp_path, Tables(n=20), cv=20)


# --- statements ------------------------------------------------------------------------------------------------------


def test_a_statement_about_some_rows_is_none_about_all(agreed):
    """A coordinator that asks for bounds of a fold cannot show them as those of the model."""
    plan, keys, sites, result = agreed
    question = replace(result.question(1), kind="part", hessian=False)
    asking = Asking(plan, keys, transport(sites))
    alphas = np.asarray(result.alphas)[1:]
    assert rule(state, asking, plan, [replace(question, problem="fold 0")], alphas, result.unit) == "part"
    part_of(sites["north"])  # the last question about all rows is found


@pytest.mark.parametrize(
    ("other", "words"), [({"ridge": 0.5}, "ridge"), ({"l1_ratio": 0.5}, "single coefficients")]
)
def test_a_statement_is_of_the_penalty_of_its_plan(agreed, other, words):
    plan, _, _, result = agreed
    check_signatures(result.statement.to_bytes(), plan)
    with pytest.raises(FederatedError, match=words):
        check_signatures(result.statement.to_bytes(), replace(plan, **other))


def test_logs_are_those_of_their_site(agreed):
    """Lines of one site are none of another's."""
    _, _, sites, _ = agreed
    log = AnswerLog(sites["north"].folder / LOG, sites["south"].keys, begin=False)
    assert rule(log.rounds, sites["north"].agreed().digest) == "log"
