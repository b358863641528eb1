"""Every transport passes the battery, and the battery finds what is wrong with one."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial

import pytest
from transport_helpers import folder_sites, https_sites

from tasksieve.checks import check_transport
from tasksieve.federated.errors import FederatedError, SiteSilent
from tasksieve.federated.transport import DamagedResponse, InProcess, SiteRefused, reply_in, respond


def test_folders(tmp_path):
    check_transport(partial(folder_sites, tmp_path), patience=1.0, longest=1 << 18)


def test_https(tmp_path):
    check_transport(partial(https_sites, tmp_path), patience=1.0, longest=1 << 18)


def test_threads_in_process():
    check_transport(lambda sites, _: nullcontext(InProcess(sites, threads=3)), patience=None, longest=1000)


class Flawed:
    """A transport with one flaw."""

    def __init__(self, sites, flaw):
        self.inner, self.flaw, self.last = InProcess(sites), flaw, None

    def exchange(self, message):
        if self.flaw == "text":
            message = message.replace(b"\r\n", b"\n")
        if self.flaw == "cut":
            message = message[:100_000]
        if self.flaw == "no refusals":
            try:
                return self.inner.exchange(message)
            except FederatedError:
                return dict.fromkeys(self.inner.sites, b"")
        if self.flaw == "other refusals":
            try:
                return self.inner.exchange(message)
            except FederatedError:
                raise ConnectionError("closed") from None
        if self.flaw == "speaks of rows":
            replies = {}
            for name, site in self.inner.sites.items():
                try:
                    replies[name] = site(message)
                except FederatedError as error:
                    raise SiteRefused(name, error.rule, error.words, error.signed) from None
                except ValueError as error:
                    raise FederatedError("site-error", "no answer") from error
            return replies
        if self.flaw == "unsigned refusals":
            try:
                return self.inner.exchange(message)
            except SiteRefused as refused:
                raise SiteRefused(refused.site, refused.rule, refused.said) from None
        replies = dict(self.inner.exchange(message))
        if self.flaw == "a site too few":
            del replies["east"]
        if self.flaw == "swapped":
            replies["east"], replies["north"] = replies["north"], replies["east"]
        if self.flaw == "late":
            replies, self.last = (self.last or replies), replies
        if self.flaw == "views":
            replies = {name: memoryview(reply) for name, reply in replies.items()}
        return replies


@pytest.mark.parametrize(
    ("flaw", "name"),
    [
        ("text", "T1"),
        ("cut", "T1"),
        ("no refusals", "T3"),
        ("other refusals", "T3"),
        ("unsigned refusals", "T3"),
        ("speaks of rows", "T4"),
        ("a site too few", "T0"),
        ("swapped", "T1"),
        ("late", "T1"),
        ("views", "T0"),
        ("waits for ever", "T5"),
        ("names all", "T5"),
    ],
)
def test_flaws_are_found(flaw, name):
    @contextmanager
    def connect(sites, patience):
        transport = Flawed(sites, flaw)
        if flaw == "names all":
            asked = transport.exchange
            transport.exchange = lambda message: _all_silent(sites) if message[:4] == b"wait" else asked(message)
        yield transport

    with pytest.raises(AssertionError, match=f"^{name}: "):
        check_transport(connect, patience=0.1, longest=200_000)


def _all_silent(sites):
    raise SiteSilent(sites)


def test_responses_are_whole_and_to_their_message():
    message = b"a message"
    response = respond(bytes.upper, message)
    assert reply_in(response, "north", message) == b"A MESSAGE"
    for cut in range(len(response)):
        with pytest.raises(DamagedResponse):
            reply_in(response[:cut], "north", message)
    for at in range(len(response)):
        changed = bytearray(response)
        changed[at] ^= 4
        with pytest.raises(DamagedResponse):
            reply_in(bytes(changed), "north", message)
    with pytest.raises(DamagedResponse, match="another message"):
        reply_in(response, "north", b"another")
    with pytest.raises(DamagedResponse):
        reply_in(response + b"x", "north", message)


def test_refusals_cannot_act_on_a_terminal():
    def reply(message):
        raise FederatedError("rule", "\x1b[2J" + "long " * 1000)

    with pytest.raises(SiteRefused) as found:
        InProcess({"north": reply}).exchange(b"")
    assert "\x1b" not in str(found.value)
    assert len(str(found.value)) < 600


def test_errors_at_a_site_are_logged_there(caplog):
    def reply(message):
        raise KeyError("row 12")

    with pytest.raises(SiteRefused, match="site-error: site north refuses: it could not answer"):
        InProcess({"north": reply}).exchange(b"")
    assert "row 12" in caplog.text
