"""Pieces of work in step: who is served together, who waits for whom, what ends them all."""

from __future__ import annotations

import signal
import threading
from contextvars import ContextVar

import pytest

from tasksieve.design.lockstep import Lockstep


class Server:
    """Doubles numbers, and remembers who came together."""

    def __init__(self):
        self.batches = []

    def __call__(self, requests):
        self.batches.append(sorted(requests))
        return [2 * request for request in requests]


def asking(steps, numbers):
    return lambda: [steps.ask(number) for number in numbers]


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_requests_are_served_together(slots):
    server = Server()
    steps = Lockstep(slots, server)
    asked = [[1, 4, 6], [2, 5], [], [3]]
    assert steps.run([asking(steps, numbers) for numbers in asked]) == [[2, 8, 12], [4, 10], [], [6]]
    assert server.batches == [[1, 2, 3], [4, 5], [6]]  # as many meetings as the longest needs, in any order


def test_outside_of_a_run_there_is_no_waiting():
    steps = Lockstep(1, Server())
    assert steps.ask(21) == 42
    steps.wait_until(lambda: False)
    assert steps.run([]) == []


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_no_more_run_than_have_a_slot(slots):
    lock, running, most = threading.Lock(), [0], [0]
    steps = Lockstep(slots, Server())

    def work():
        for number in range(5):
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            sum(range(20_000))
            with lock:
                running[0] -= 1
            steps.ask(number)

    steps.run([work] * 6)
    assert 1 <= most[0] <= slots


@pytest.mark.parametrize("slots", [1, 4])
def test_no_worker_runs_further_ahead_than_allowed(slots):
    steps, done, leads = Lockstep(slots), [0, 0, 0], []

    def work(me):
        for k in range(20):
            steps.wait_until(lambda k=k: k < min(done) + 3)
            leads.append(k - min(done))
            done[me] = k + 1

    steps.run([lambda me=me: work(me) for me in range(3)])
    assert done == [20, 20, 20]
    assert max(leads) == 2


def test_those_who_wait_do_not_hold_up_those_who_ask():
    server = Server()
    steps, ready = Lockstep(1, server), []

    def late():
        steps.wait_until(lambda: bool(ready))
        return steps.ask(7)

    def early():
        steps.ask(1)
        ready.append(True)
        return steps.ask(2)

    assert steps.run([late, early]) == [14, 4]
    assert server.batches == [[1], [2, 7]]


@pytest.mark.parametrize("error", [ValueError("column 3"), KeyboardInterrupt()])
def test_what_one_raises_ends_all(error):
    steps, after = Lockstep(2, Server()), []

    def fails():
        steps.ask(1)
        raise error

    def goes_on():
        for number in range(100):
            steps.ask(number)
        after.append(True)

    with pytest.raises(type(error)) as caught:
        steps.run([goes_on, fails, goes_on])
    assert caught.value is error
    assert not after


def test_a_failure_of_the_server_is_raised():
    def serve(requests):
        raise OSError("the file is gone")

    steps = Lockstep(1, serve)
    with pytest.raises(OSError, match="the file is gone"):
        steps.run([asking(steps, [1]), asking(steps, [2])])


def test_ctrl_c_ends_all():
    steps, after = Lockstep(1, Server()), []

    def work():
        steps.ask(1)
        signal.raise_signal(signal.SIGINT)
        for number in range(1000):
            steps.ask(number)
        steps.wait_until(lambda: False)
        after.append(True)

    # Where the tests run in the background of a shell, Ctrl-C is ignored unless a handler is set.
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            steps.run([work, asking(steps, [1])])
    finally:
        signal.signal(signal.SIGINT, usual)
    assert not after


def test_pieces_see_the_context_of_the_caller():
    here: ContextVar[str] = ContextVar("here", default="nowhere")
    here.set("value")
    assert Lockstep().run([here.get, here.get]) == ["value", "value"]
