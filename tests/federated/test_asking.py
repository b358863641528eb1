"""Questions to sums: they are right, open or masked; faults are refused; nothing is lost by a stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from federated_sites import Federation, federation, fixed_keys, rows

from tasksieve.federated.answer import FIELDS
from tasksieve.federated.asking import Asking
from tasksieve.federated.errors import FederatedError, SiteSilent
from tasksieve.federated.messages import seal_round, unseal_round
from tasksieve.federated.question import Question

pytest.importorskip("cryptography")

NORMS = Question(kind="norms", hessian=False)
POINT = Question(features=[0, 3], s=[0.2, 0.05])
FEW = Question(features=[1], s=[0.0], levels=[1, 4], hessian=False)
ASKED = (Question(), NORMS, POINT, FEW)
PART = Question(features=[0, 3], s=[0.2, 0.05], kind="part", hessian=False)


def bits(answer):
    return {name: None if value is None else np.asarray(value).tobytes() for name, value in vars(answer).items()}


def rule(call, *given):
    with pytest.raises(FederatedError) as error:
        call(*given)
    return error.value.rule


@pytest.mark.parametrize("n_sites", [3, 5])
def test_sums_are_those_of_the_sites(tmp_path, n_sites):
    sites = federation(tmp_path, n_sites)
    asking = sites.asking()
    found = [*asking.ask(ASKED), *asking.ask([PART])]
    assert asking.traffic.rounds == sites.calls == 3
    for question, answer in zip([*ASKED, PART], found, strict=True):
        exact = sum(site.answer(question) for site in sites.local.values())
        for part in FIELDS[question.kind]:
            if part.name == "no_dual":
                continue
            if part.name == "hessian" and not question.hessian:
                assert answer.hessian is None
                continue
            got, true = np.ravel(getattr(answer, part.name)), np.ravel(getattr(exact, part.name))
            digits = 1e-5 if part.ring == 32 else 1e-9
            largest = np.abs(true).max(initial=0.0)
            np.testing.assert_allclose(got, true, rtol=digits, atol=digits * largest, err_msg=part.name)
            if part.rounding != "nearest":  # as sums in doubles, so to their rounding
                side = 1.0 if part.rounding == "up" else -1.0
                assert (side * (got - true) >= -1e-13 * np.abs(true)).all()


@pytest.mark.parametrize(("scale", "rounds"), [(1.0, 1), (1e6, 1), (1e-3, 1), (1e9, 2), (1e-6, 2)])
def test_the_empty_model_is_part_of_the_first_exchange(tmp_path, scale, rounds):
    """Its words are long enough for numbers of most sizes; where they are not, it is asked again."""
    local = {name: rows(k, scale=scale) for k, name in enumerate(("north", "east", "south"))}
    sites = Federation(local, tmp_path)
    asking = sites.asking()
    null = Question(kind="null")
    (found,) = asking.ask([null])
    assert asking.traffic.rounds == sites.calls == rounds
    exact = sum(site.answer(null) for site in local.values())
    for name in ("phi", "loss", "rr", "yr", "dual", "levels"):
        got, true = getattr(found, name), getattr(exact, name)
        np.testing.assert_allclose(got, true, rtol=1e-6, atol=1e-6 * np.max(np.abs(true)), err_msg=name)
    (again,) = asking.ask([null])  # now that sizes are known
    assert asking.traffic.rounds == rounds + 1
    np.testing.assert_allclose(again.levels, exact.levels, rtol=1e-5, atol=1e-5 * exact.levels.max())
    assert (found.levels >= exact.levels * (1.0 - 1e-13)).all()


def test_open_and_masked_answers_have_the_same_bits(tmp_path):
    masked = federation(tmp_path / "masked").asking()
    open_ = federation(tmp_path / "open", masked=False).asking()
    for questions in (ASKED, [PART, POINT]):
        for one, two in zip(masked.ask(questions), open_.ask(questions), strict=True):
            assert bits(one) == bits(two)
    assert masked.traffic.up == open_.traffic.up  # masks cost no bytes


def test_a_guess_that_was_too_small_costs_a_round_and_nothing_else(tmp_path):
    sites = federation(tmp_path)
    asking = sites.asking()
    asking.ask([NORMS])
    before = asking.traffic.rounds
    (small,) = asking.ask([replace(POINT, reach=1e-4)])
    assert asking.traffic.rounds > before + 1
    exact = sum(site.answer(POINT) for site in sites.local.values())
    np.testing.assert_allclose(small.levels, exact.levels, rtol=1e-4)
    assert (small.levels >= exact.levels * (1 - 1e-13)).all()
    np.testing.assert_allclose(small.hessian, exact.hessian, atol=1e-4 * np.abs(exact.hessian).max())


def test_a_smaller_reach_gives_more_digits(tmp_path):
    asking = federation(tmp_path).asking()
    asking.ask([NORMS])
    strong = Question(features=np.arange(6), s=np.full(6, 100.0))  # products are small there
    (exact,) = [sum(site.answer(strong) for site in federation(tmp_path / "b").local.values())]
    coarse, fine = (asking.ask([replace(strong, reach=r)])[0] for r in (0.0, exact.levels.max()))
    errors = [np.max(answer.levels - exact.levels) for answer in (coarse, fine)]
    assert 0 <= errors[1] < errors[0] / 50


def test_a_stopped_coordinator_goes_on(tmp_path):
    """Stopped after any exchange, also in the midst of one: the same bits, and nothing is asked twice that was kept."""
    whole = federation(tmp_path / "whole")
    expected = [bits(answer) for questions in (ASKED, [PART, POINT]) for answer in whole.asking().ask(questions)]
    for stop in range(3):
        sites = federation(tmp_path / f"{stop}")

        class Stopping:
            left = stop

            def exchange(self, message, sites=sites):
                if self.left == 0:
                    raise KeyboardInterrupt
                self.left -= 1
                return sites.exchange(message)

        folder = tmp_path / f"{stop}" / "kept"
        with pytest.raises(KeyboardInterrupt):
            first = Asking(sites.plan, sites.keys["coordinator"], Stopping(), folder)
            for questions in (ASKED, [PART, POINT]):
                first.ask(questions)
        again = sites.asking(folder)
        got = [bits(answer) for questions in (ASKED, [PART, POINT]) for answer in again.ask(questions)]
        assert got == expected
        assert again.traffic.reused == stop
        assert sites.calls == 3


def test_kept_replies_that_were_damaged_are_asked_for_again(tmp_path):
    sites = federation(tmp_path)
    expected = bits(sites.asking(tmp_path / "kept").ask([POINT])[0])
    for file in sorted((tmp_path / "kept").glob("reply-0001-*")):
        file.write_bytes(file.read_bytes()[:-3])
    again = sites.asking(tmp_path / "kept")
    assert bits(again.ask([POINT])[0]) == expected
    assert (again.traffic.reused, sites.calls) == (1, 3)


@pytest.mark.parametrize("damage", [b"", b"short", "cut", "changed"])
def test_a_kept_round_that_was_damaged_is_written_again(tmp_path, damage):
    """It is no other run: replies that were kept say themselves what they answer, and are used."""
    sites = federation(tmp_path)
    expected = bits(sites.asking(tmp_path / "kept").ask([POINT])[0])
    for number in (0, 1):
        file = tmp_path / "kept" / f"round-{number:04d}.message"
        whole = file.read_bytes()
        file.write_bytes({"cut": whole[:-9], "changed": whole[:70] + b"!" + whole[71:]}.get(damage, damage))
        again = sites.asking(tmp_path / "kept")
        assert bits(again.ask([POINT])[0]) == expected
        assert (again.traffic.reused, sites.calls) == (2, 2)
        assert file.read_bytes() == whole


def test_the_folder_of_another_run_is_refused(tmp_path):
    sites = federation(tmp_path)
    sites.asking(tmp_path / "kept").ask([POINT])
    assert rule(sites.asking(tmp_path / "kept").ask, [FEW]) == "resume"


def test_a_silent_site_is_waited_for(tmp_path):
    """Also between a question and its repetition in larger units."""
    sites = federation(tmp_path)
    small = replace(POINT, reach=1e-4)
    expected = bits(federation(tmp_path / "b").asking().ask([small, FEW])[0])

    class Patchy:
        turns = 0

        def exchange(self, message):
            self.turns += 1
            if self.turns % 2:
                raise SiteSilent(["east"])
            return sites.exchange(message)

    asking = Asking(sites.plan, sites.keys["coordinator"], Patchy(), tmp_path / "kept")
    for _ in range(30):
        try:
            found = asking.ask([small, FEW])[0]
            break
        except SiteSilent as silent:
            assert silent.names == ("east",)  # noqa: PT017
    assert bits(found) == expected


# --- messages that are not what they should be -------------------------------------------------------------------


def round_message(sites, questions=(POINT,)):
    """A round as the coordinator would send it."""
    kept = []

    class Listening:
        def exchange(self, message):
            kept.append(message)
            return sites.exchange(message)

    Asking(sites.plan, sites.keys["coordinator"], Listening()).ask(questions)
    return kept[-1]


def test_messages_to_a_site_that_were_changed_are_refused(tmp_path):
    sites = federation(tmp_path)
    message, node = round_message(sites), sites.nodes["north"]
    good = node.reply(message)
    assert node.reply(message) == good
    rng = np.random.default_rng(0)
    for k in rng.choice(len(message), 60, replace=False):
        changed = bytearray(message)
        changed[k] ^= 1 << int(rng.integers(8))
        assert rule(node.reply, bytes(changed)) == "signature"
    for k in (0, 10, 64, 65, len(message) - 1):
        assert rule(node.reply, message[:k]) in ("signature", "format")
    assert rule(node.reply, message + b"\0") == "signature"
    other = unseal_round(message, sites.plan)
    assert rule(node.reply, seal_round(other, fixed_keys("somebody"))) == "signature"
    assert rule(node.reply, sites.nodes["east"].reply(message)) == "signature"  # a site is no coordinator
    another = replace(other, plan=bytes(32))
    assert rule(node.reply, seal_round(another, sites.keys["coordinator"])) == "plan"
    fewer = replace(other, units=tuple(replace(units, sites=2) for units in other.units))
    assert rule(node.reply, seal_round(fewer, sites.keys["coordinator"])) == "plan"
    far = replace(other, questions=(replace(POINT, features=[0, 77]),))
    assert rule(node.reply, seal_round(far, sites.keys["coordinator"])) == "question"


def test_replies_that_were_changed_are_refused(tmp_path):
    sites = federation(tmp_path)
    other = federation(tmp_path / "other")
    other.plan.title = "another plan"
    other.nodes = {name: other.node(name) for name in other.local}
    stranger = Federation(sites.local, tmp_path / "stranger", keys={"east": fixed_keys("stranger")})
    kept = {}

    def truncated(replies):
        return {**replies, "east": replies["east"][:-1]}

    def swapped(replies):
        return {**replies, "east": replies["north"], "north": replies["east"]}

    def lost(replies):
        return {name: reply for name, reply in replies.items() if name != "east"}

    def unasked(replies):
        return {**replies, "mars": replies["east"]}

    def replayed(replies):
        return {**replies, "east": kept["east"]}

    def altered(replies):
        changed = bytearray(replies["east"])
        changed[-1] ^= 1
        return {**replies, "east": bytes(changed)}

    def resigned(replies):
        return {**replies, "east": kept["stranger"]}

    cases = {truncated: "signature", swapped: "signature", lost: "replies", unasked: "replies", replayed: "replay",
             altered: "signature", resigned: "signature"}  # fmt: skip
    for tamper, expected in cases.items():

        class Tampering:
            calls = 0

            def exchange(self, message, tamper=tamper):
                self.calls += 1
                replies = sites.exchange(message)
                if self.calls == 1:
                    kept["east"] = replies["east"]
                    return replies
                node = stranger.nodes["east"]
                node.plan = sites.plan  # it signs the right round with keys of its own
                kept["stranger"] = node.reply(message)
                return tamper(replies)

        asking = Asking(sites.plan, sites.keys["coordinator"], Tampering())
        assert rule(asking.ask, [POINT]) == expected, tamper.__name__
    assert sites.asking().ask([POINT])[0].loss > 0.0


def test_a_site_that_computes_otherwise_is_noticed(tmp_path):
    sites = federation(tmp_path)
    site = sites.local["south"]
    right = type(site).answer

    class Broken(type(site)):
        def answer(self, question):
            answer = right(self, question)
            return replace(answer, z=2.0 * answer.z) if question.kind == "point" else answer

    sites.nodes["south"].local = Broken(site.X, site.y)
    assert rule(sites.asking().ask, [POINT]) == "identity"


# --- the site's own checks ---------------------------------------------------------------------------------------


def test_a_site_checks_keys_data_and_plan(tmp_path):
    sites = federation(tmp_path)
    sites.local["north"] = rows(0, scale=2.0)
    assert rule(sites.node, "north") == "data"
    sites.keys["east"] = fixed_keys("others")
    assert rule(sites.node, "east") == "keys"
    two = federation(tmp_path / "two")
    less = replace(two.plan, sites={name: two.plan.sites[name] for name in ("north", "east")})
    assert rule(lambda: two.node("north", plan=less)) == "min-sites"
    assert rule(lambda: two.node("south", plan=less)) == "plan"
    twice = replace(two.plan, sites={**two.plan.sites, "west": two.plan.sites["east"]})
    assert rule(lambda: two.node("north", plan=twice)) == "keys"


def test_a_site_never_masks_two_answers_with_one_stream(tmp_path):
    sites = federation(tmp_path)
    message = round_message(sites)
    node = sites.nodes["north"]
    node.reply(message)
    node.local.y = node.local.y + 1.0  # changed behind its back
    assert rule(node.reply, message) == "answer-changed"


def test_rules_see_how_much_was_answered(tmp_path):
    sites = federation(tmp_path)
    seen = []

    def allow(questions, answered):
        seen.append((len(questions), answered))
        if answered + len(questions) > 5:
            raise FederatedError("max-questions", "five are enough")

    sites.nodes["north"] = sites.node("north", allow=allow)
    asking = sites.asking()
    asking.ask([POINT, FEW])
    sites.nodes["north"] = sites.node("north", allow=allow)  # restarted
    asking.ask([POINT, PART])  # one of them was answered before
    assert seen == [(1, 0), (2, 1), (2, 2)]
    before = len(sites.local["north"].asked)
    assert rule(asking.ask, [POINT, replace(POINT, l1=0.1), replace(POINT, l1=0.2)]) == "max-questions"
    assert len(sites.local["north"].asked) == before  # refused before a row is read


def test_the_log_of_a_site_can_be_replayed(tmp_path):
    sites = federation(tmp_path)
    asking = sites.asking()
    asking.ask([POINT])
    asking.ask([FEW])
    node = sites.node("north")  # restarted
    assert node.replay() == {0: True, 1: True, 2: True}
    node.local.X = node.local.X * 1.5
    assert node.replay()[1] is False
