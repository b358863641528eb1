"""What a shard that begins again is told."""

from __future__ import annotations

import numpy as np

from tasksieve.design.anchored import Anchored
from tasksieve.design.cluster.ledger import same
from tasksieve.design.cluster.messages import PenaltyName, Question
from tasksieve.design.cluster.replay import Replay

NAME = PenaltyName(0, 2.0)


def remember(number: int, verb: str = "remember") -> Question:
    return Question(verb, (number, NAME, None, *((100, 16) if verb == "measure_all" else ())))


def verbs(replay: Replay) -> list[str]:
    return [question.verb for question in replay.questions()]


def test_without_a_ledger_only_anchors_and_the_last_note_are_kept() -> None:
    replay = Replay()
    for question in (Question("measure"), remember(1), remember(2), Question("forget", (0,)), remember(3)):
        replay.add(question)
    for _ in range(3):
        replay.add(Question("noted_bound", (None, NAME, {})))
    assert verbs(replay) == ["measure", "remember", "remember", "noted_bound"]
    assert [question.common[0] for question in replay.anchors] == [2, 3]
    assert replay.tokens() == {0}


def test_masks_stand_for_all_that_came_before() -> None:
    replay = Replay()
    for question in (remember(1), Question("begin", (NAME,)), Question("stand_at_null", (1.0,)), Question("reject")):
        replay.add(question)
    assert verbs(replay) == ["remember", "begin", "stand_at_null", "reject"]
    replay.add(remember(2, "measure_all"))
    replay.compact({0: (b"",)})
    replay.add(Question("judge"))
    assert verbs(replay) == ["remember", "remember", "begin", "restore", "judge"]
    assert replay.anchors[1] == Question("remember", (2, NAME, None))


def test_norms_under_a_row_metric_are_measured_again_in_the_first_reading() -> None:
    replay = Replay()
    asked = Question("also_measure", (1,))
    for question in (remember(1), Question("begin", (NAME,)), asked, remember(2, "measure_all")):
        replay.add(question)
    assert verbs(replay) == ["remember", "begin", "also_measure", "measure_all"]
    replay.add(Question("also_measure", (2,)))
    replay.add(remember(3, "measure_all"))
    replay.compact({0: (b"",)})
    assert verbs(replay) == ["also_measure", "remember", "remember", "remember", "begin", "restore"]
    assert replay.questions()[0].common == (2,)


def test_questions_are_the_same_to_the_bit() -> None:
    one, other = (Anchored(np.ones((1, 2)), np.full(2, 0.5), 1.0) for _ in range(2))
    assert same(([one], NAME, None), ([other], NAME, None))
    other.remainder[1] = np.nextafter(0.5, 1.0)
    assert not same([one], [other])
    assert not same((1.0,), (1,))
    assert not same(None, NAME)
