"""Under masks a coordinator sees the sums and noise: two worlds with the same sums look the same to it.

In one world the rows of north and east are what they are, in the other they have changed places. Sums are the same to
the bit. Each test is also run with open answers, where it must tell the worlds apart: else it could not fail.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from federated_sites import Federation, fixed_keys, rows
from scipy.stats import ks_2samp

from tasksieve.federated import masks, node
from tasksieve.federated.answer import Words, to_words
from tasksieve.federated.keys import roster
from tasksieve.federated.messages import seal_round, unseal_round, unseal_words
from tasksieve.federated.question import Question

pytest.importorskip("cryptography")

QUESTIONS = [Question(features=[0, 3], s=[0.2, 0.05])]


def world(folder, swapped, masked, draw=0):
    first, second = rows(1), rows(2)
    local = {"north": second, "east": first} if swapped else {"north": first, "east": second}
    keys = {name: fixed_keys(f"{name} {draw}") for name in ("north", "east", "south")}
    return Federation({**local, "south": rows(3)}, folder, masked, keys)


def transcript(sites):
    """All that the coordinator receives in the exchange of a point: words of each site; and the sums."""
    seen = {}

    class Listening:
        def exchange(self, message):
            replies = sites.exchange(message)
            asked = unseal_round(message, sites.plan)
            known = roster(sites.plan)
            for name, reply in replies.items():
                seen[name] = unseal_words(reply, asked, name, known[name])
            return replies

    asking = sites.asking()
    asking.transport = Listening()
    (answer,) = asking.ask(QUESTIONS)
    return seen, answer


@pytest.mark.parametrize("masked", [True, False])
def test_worlds_with_the_same_sums_cannot_be_told_apart(tmp_path, masked):
    """An observer who knows both data sets guesses the world from the words of north, over many draws of keys."""
    plain = {swapped: transcript(world(tmp_path / f"plain{swapped}", swapped, False)) for swapped in (False, True)}
    assert plain[0][1].loss == plain[1][1].loss
    n, right, draws = 10, 0, {False: [], True: []}
    for draw in range(n):
        for swapped in (False, True):
            seen, answer = transcript(world(tmp_path / f"{draw}{swapped}", swapped, masked, draw + n * swapped))
            assert answer.loss == plain[0][1].loss
            north = seen["north"]
            near = [np.abs((north.long - plain[k][0]["north"].long).view(np.int64).astype(float)).sum() for k in (0, 1)]
            right += (near[1] < near[0]) == swapped
            draws[swapped].append([north.long[4:].astype(float), seen["south"].long[4:].astype(float)])
    one, two = (np.array(draws[swapped]).reshape(n, -1) for swapped in (False, True))
    least = min(ks_2samp(a, b).pvalue for a, b in zip(one.T, two.T, strict=True)) * one.shape[1]
    noticed = abs(right - n) > 4.0 * np.sqrt(2 * n) / 2 or least < 1e-4
    assert noticed != masked


@pytest.mark.parametrize("masked", [True, False])
def test_every_transcript_of_one_world_is_one_of_the_other(tmp_path, monkeypatch, masked):
    """Exactly: with the stream of one pair shifted, the other world sends the same words, bit for bit.

    Streams are uniform, so the shifted one is as likely: the two worlds have the same distribution of transcripts.
    """
    plain = {swapped: transcript(world(tmp_path / f"plain{swapped}", swapped, False))[0] for swapped in (False, True)}
    here, _ = transcript(world(tmp_path / "here", False, masked))
    other = world(tmp_path / "there", True, masked)
    other.plan, other.nodes = there(other, tmp_path)
    shared = other.keys["north"].secrets("north", other.public)["east"]
    shift = plain[True]["north"] - plain[False]["north"]
    original = masks.stream

    def stream(secret, context, n_long, n_short):
        noise = original(secret, context, n_long, n_short)
        if secret == shared and n_long == len(shift.long):
            noise = noise + shift  # east comes before north, so north subtracts it
        return noise

    monkeypatch.setattr(masks, "stream", stream)
    seen, _ = transcript(other)
    same = all(same_words(seen[name], here[name]) for name in here)
    assert same == masked


def there(sites, folder):
    """The swapped world under the plan of the first: the coordinator sees digests of data, which are salted."""
    first = world(folder / "first", False, sites.masked)
    sites.public = roster(first.plan)
    nodes = {}
    for name, site in first.nodes.items():
        site.local = sites.local[name]
        nodes[name] = site
    return first.plan, nodes


def same_words(one: Words, two: Words) -> bool:
    return bool((one.long == two.long).all() and (one.short == two.short).all())


def test_sites_that_were_asked_different_things_reveal_nothing(tmp_path):
    """A coordinator that asks one site about s and the others about another point finds no sum that means anything."""
    sites = world(tmp_path, False, True)
    kept = []

    class Listening:
        def exchange(self, message):
            kept.append(message)
            return sites.exchange(message)

    asking = sites.asking()
    asking.transport = Listening()
    asking.ask(QUESTIONS)
    asked = unseal_round(kept[-1], sites.plan)
    other = type(asked)(asked.number + 1, asked.plan, asked.questions, asked.units)
    known = roster(sites.plan)

    def total(rounds):
        words = []
        for name, each in zip(sites.nodes, rounds, strict=True):
            reply = sites.nodes[name].reply(seal_round(each, sites.keys["coordinator"]))
            words.append(unseal_words(reply, each, name, known[name]))
        return words[0] + words[1] + words[2]

    fair, unfair = total([asked] * 3), total([asked, asked, other])
    assert (np.abs(fair.long.view(np.int64)) < 2.0**62).all()
    assert (np.abs(unfair.long.view(np.int64)) > 2.0**62).mean() > 0.2
    assert (fair.long != unfair.long).all()


@pytest.mark.parametrize("hidden", [True, False])
def test_numbers_that_do_not_fit_do_not_show_what_the_others_sent(tmp_path, monkeypatch, hidden):
    """A sum without one site, and then the sum with it, would be that site's numbers: instead the first is noise."""
    if not hidden:
        monkeypatch.setattr(node, "unfit_hidden", lambda words, secret, context: words)
    local = {"north": rows(1), "east": rows(2), "south": rows(3)}
    local["north"].y = 8.0 * local["north"].y
    sites = Federation(local, tmp_path)
    question = replace(QUESTIONS[0], reach=max(site.answer(QUESTIONS[0]).levels.max() for site in (rows(2), rows(3))))
    asking, totals = sites.asking(), []
    exchange = asking.exchange
    monkeypatch.setattr(asking, "exchange", lambda *asked: totals.append((asked, exchange(*asked))) or totals[-1][1])
    asking.ask([question])
    assert len(totals) > 2  # sizes, what did not fit, what did
    ((_, (units,)), (total,)) = totals[1]
    others = [to_words(local[name].answer(question), question, units, 6) for name in ("east", "south")]
    without = others[0] + others[1]
    shown = (total.long[5:] == without.long[5:]).all() and (total.short == without.short).all()
    assert shown == (not hidden)
    if hidden:
        assert (total.long[5:] != without.long[5:]).all()
        raised = total.long[1:5]
        assert sorted(raised.tolist())[:2] == [0, 0]
        assert all(flag == 0 or flag > 2**32 for flag in raised.tolist())  # noise, no count


def test_the_first_exchange_shows_the_largest_size_and_nothing_else(tmp_path):
    """Whatever the smaller sites have: bins up to the largest are noise, those above are 0."""
    top = []
    for scales in ((8.0, 1.0, 1.0), (8.0, 0.01, 4.0)):
        local = {name: rows(k, scale=scale) for k, (name, scale) in enumerate(zip("abc", scales, strict=True))}
        sites = Federation(local, tmp_path / f"{scales[1]}")
        asking = sites.asking()
        seen = []
        exchange = asking.exchange
        asking.exchange = lambda *asked, exchange=exchange, seen=seen: seen.append(exchange(*asked)) or seen[-1]
        asking.ask(QUESTIONS)
        bins = seen[0][0].short.reshape(3, 512)
        last = [int(np.flatnonzero(row)[-1]) for row in bins]
        top.append(last[0])
        for row, end in zip(bins, last, strict=True):
            assert row[: end + 1].all()
            # the last bit of what a site sends is 1, so that it is not 0
            seen_bits = np.unpackbits(row[: end + 1].view(np.uint8), bitorder="little").reshape(-1, 32)[:, 1:]
            assert abs(seen_bits.mean() - 0.5) < 5.0 * 0.5 / np.sqrt(seen_bits.size)
    assert top[0] == top[1]
