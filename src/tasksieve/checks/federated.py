"""The properties of a transport between a coordinator and sites: every byte arrives, at every site, or it is said."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..docstrings import described_by
from ..federated.errors import FederatedError, SiteSilent
from ..federated.transport import Reply, SiteRefused, Transport
from .claims import FAILURE, SEED, claim

#: bytes that text modes, line endings and string terminators change
_DELICATE = bytes(range(256)) + b"\r\n\n\r\x00\x1a" + b"\xff\xfe\xef\xbb\xbf" + b"\r\n"
_SECRET = "row 4711"
_LONG = 600.0
_SITES = ("north", "south", "east")


@dataclass(frozen=True)
class ExampleSite:
    """A site whose replies show who was asked what: a function of its name and the message, which can be pickled."""

    name: str

    def __call__(self, message: bytes) -> bytes:
        word, _, rest = message.partition(b":")
        said = rest.decode(errors="replace")
        if word == b"refuse" and said == self.name:
            error = FederatedError("example-rule", f"{self.name} does not answer this")
            error.signed = _signed(self.name, message)
            raise error
        if word == b"fail" and said == self.name:
            raise ValueError(f"{_SECRET} of {self.name} is not a number")
        if word == b"wait" and said.startswith(self.name):
            time.sleep(max(0.0, float(said.split()[1]) - time.time()))
        size = int.from_bytes(hashlib.sha256(message).digest()[:1], "little") + len(message)
        return hashlib.shake_256(self.name.encode() + b"\x00" + message).digest(size) + _DELICATE


def _signed(site: str, message: bytes) -> bytes:
    """What stands for a signature of a site."""
    return hashlib.sha256(site.encode() + message).digest() + _DELICATE


@described_by(SEED, raises=FAILURE)
def check_transport(
    connect: Callable[[Mapping[str, Reply], float], AbstractContextManager[Transport]],
    *,
    patience: float | None = 2.0,
    longest: int = 1 << 20,
    seed: int = 0,
) -> None:
    """Check that a transport brings every message to all sites and every reply back.

    What is checked, with three sites:

    - T0: the replies are a mapping with the names of all sites and bytes for each; messages are left alone;
    - T1: every byte arrives, there and back: short and long messages, empty ones, all byte values, line endings;
    - T2: the same message twice has the same replies, and no message is given the replies of another, in any order;
    - T3: a refusal arrives as `SiteRefused` with the names of the site and its rule, as the site has signed it, and the
      next message is answered;
    - T4: what any other error says, which may be about rows, does not leave the site;
    - T5: a site that does not answer within the patience is named by `SiteSilent`, it alone; the same message given
      again is answered in the end.

    Parameters
    ----------
    connect : callable
        ``connect(sites, patience)`` gives a context manager whose value is the transport and which starts and ends all
        that it needs. `sites` has what answers for each name: functions of bytes that can be
        pickled, for sites in other processes. `patience` is how many seconds an exchange is to wait for silent sites.
        It is called twice, with a long patience for T0 to T4 and a short one for T5.
    patience : float or None, default=2
        The short one, more than an exchange of a few bytes takes. None for a transport that waits for ever: T5 is left
        out.
    longest : int, default=1048576
        Bytes of the longest message.

    Examples
    --------
    >>> from contextlib import nullcontext
    >>> import tasksieve as ts
    >>> from tasksieve.federated.transport import InProcess
    >>> ts.checks.check_transport(lambda sites, patience: nullcontext(InProcess(sites)), patience=None)
    """
    sites: dict[str, Reply] = {name: ExampleSite(name) for name in _SITES}
    rng = np.random.default_rng(seed)
    with connect(sites, _LONG) as transport:
        _check_bytes(transport, rng, longest)
        _check_again(transport, rng)
        _check_refusals(transport)
    if patience is not None:
        with connect(sites, patience) as transport:
            _check_silence(transport, patience)


def _replies(transport: Transport, message: bytes, name: str) -> Mapping[str, bytes]:
    given = bytes(message)
    replies = transport.exchange(message)
    claim(message == given, "T0: `exchange` changes its message.")
    found: Any = sorted(replies) if isinstance(replies, Mapping) else type(replies)
    words = "T0: `exchange` must return a mapping with the name of every site and no other."
    claim(found == sorted(_SITES), words, found=found, expected=sorted(_SITES))
    kinds = {site: type(reply).__name__ for site, reply in replies.items()}
    claim(set(kinds.values()) == {"bytes"}, "T0: replies must be bytes.", found=kinds)
    for site in _SITES:
        expected, reply = ExampleSite(site)(message), replies[site]
        if reply != expected:
            differ = next((k for k, (a, b) in enumerate(zip(reply, expected, strict=False)) if a != b), None)
            claim(
                False,
                f"{name}: the reply of a site must be what it said to this message, byte for byte.",
                site=site,
                message=message[:40],
                message_length=len(message),
                reply_length=len(reply),
                expected_length=len(expected),
                first_difference=differ,
            )
    return replies


def _check_bytes(transport: Transport, rng: np.random.Generator, longest: int) -> None:
    for message in (b"a", _DELICATE, b"", b"\r\n", b"\x00" * 9, _DELICATE[::-1], rng.bytes(1000), rng.bytes(longest)):
        _replies(transport, message, "T1")


def _check_again(transport: Transport, rng: np.random.Generator) -> None:
    messages = [rng.bytes(50) for _ in range(3)]
    for k in rng.permutation(np.repeat(np.arange(3), 2)):
        _replies(transport, messages[int(k)], "T2")


def _check_refusals(transport: Transport) -> None:
    site = _SITES[1]
    message = f"refuse:{site}".encode()
    error = _raised(transport, message)
    found = (getattr(error, "site", None), getattr(error, "rule", None))
    words = "T3: a refusal must arrive as `SiteRefused` with the names of the site and of its rule."
    claim(isinstance(error, SiteRefused) and found == (site, "example-rule"), words, error=error, found=found)
    words = "T3: `SiteRefused` must bring the refusal as the site has signed it."
    claim(getattr(error, "signed", b"") == _signed(site, message), words, found=getattr(error, "signed", b""))
    _replies(transport, b"after a refusal", "T3")
    error = _raised(transport, f"fail:{site}".encode())
    words = "T4: a site that fails must be reported by a `FederatedError`."
    claim(isinstance(error, FederatedError), words, error=error)
    shown = _everything_said(error)
    claim(_SECRET not in shown, "T4: what an error at a site says must not leave the site.", shown=shown)
    _replies(transport, b"after a failure", "T4")


def _everything_said(error: BaseException | None) -> str:
    """The words of an error and of those that it came from."""
    said = []
    while error is not None:
        said += [str(error), repr(error), *map(str, getattr(error, "__notes__", ()))]
        error = error.__cause__ or error.__context__
    return "\n".join(said)


def _check_silence(transport: Transport, patience: float) -> None:
    site = _SITES[2]
    message = f"wait:{site} {time.time() + 2.0 * patience}".encode()
    start = time.monotonic()
    error = _raised(transport, message)
    spent = time.monotonic() - start
    names = getattr(error, "names", None)
    words = "T5: a silent site must be named by `SiteSilent`, it alone."
    claim(isinstance(error, SiteSilent) and tuple(names or ()) == (site,), words, error=error, names=names)
    words = "T5: an exchange must end when its patience does."
    claim(spent <= 2.0 * patience + 1.0, words, seconds=spent, patience=patience)
    for attempt in range(10):
        try:
            _replies(transport, message, "T5")
            return
        except SiteSilent as silent:
            claim(attempt < 9, "T5: a message given again must be answered in the end.", error=silent)


def _raised(transport: Transport, message: bytes) -> Exception | None:
    try:
        transport.exchange(message)
    except Exception as error:
        return error
    return None
