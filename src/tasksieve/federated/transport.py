"""What every transport is: one message goes to all sites, and what each of them says comes back under its name.

A site answers a message or refuses it. Transports carry either as a *response*: bytes that say which of the two they
are, to which message and of which site, with a digest, so that half of a response, or one to another message or of
another site, is never taken for it.
Who has written a message is not checked here: messages are signed (`messages.py`).
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from .errors import SITE_ERROR, FederatedError

Reply = Callable[[bytes], bytes]  #: `SiteNode.reply`, or anything like it

#: bytes of the longest message that a site reads and of the longest response that a coordinator reads
LONGEST = 1 << 30

_MAGIC = b"tasksieve-response 1\n"
_ANSWER, _REFUSAL = b"A", b"R"
_HEAD = len(_MAGIC) + 1 + 32 + 32 + 32
_LOG = logging.getLogger("tasksieve.federated")


class Transport(Protocol):
    """A way to all sites of a problem, with the one method that it must have.

    ``exchange(message)`` brings `message` to every site and returns their replies by name. It waits until all are
    there. It raises `SiteSilent` when its patience ends (the same message may then be given again, and sites that have
    answered give the same bytes again), and `SiteRefused` when a site refuses. `tasksieve.checks.check_transport` tests
    one of your own.
    """

    def exchange(self, message: bytes) -> Mapping[str, bytes]: ...


class SiteRefused(FederatedError):
    """A site has refused a message, by a rule of its own.

    Parameters
    ----------
    site : str
        Its name.
    rule : str
        Of the site; ``"site-error"`` where it failed for reasons that stay there.
    words : str
        What the site says.
    signed : bytes
        The same as a message that the site has signed. Transports only carry it; who asks looks at it, so that nobody
        on the way can refuse in the name of a site.

    Examples
    --------
    >>> print(SiteRefused("north", "max-questions", "5000 questions were answered"))
    max-questions: site north refuses: 5000 questions were answered
    """

    def __init__(self, site: str, rule: str, words: str, signed: bytes = b"") -> None:
        super().__init__(rule, f"site {site} refuses: {words}")
        self.site, self.said, self.signed = site, words, signed

    def __reduce__(self) -> tuple[type[SiteRefused], tuple[str, str, str, bytes]]:
        return SiteRefused, (self.site, self.rule, self.said, self.signed)


class DamagedResponse(ValueError):
    """Bytes that are no whole response to the message in question: as if they had not arrived."""


def respond(reply: Reply, message: bytes, site: str = "") -> bytes:
    """The response of a site, which is named where a response could come into the place of another site's.

    The words of a `FederatedError` are meant for the coordinator. Those of any other error may speak of rows, so they
    go to the log of this process (``tasksieve.federated``) and nowhere else.
    """
    try:
        kind, body = _ANSWER, reply(message)
    except FederatedError as error:
        kind, body = _REFUSAL, _refusal(error)
    except Exception:
        _LOG.exception("A message could not be answered; the coordinator is told no more than that.")
        kind, body = _REFUSAL, _refusal(FederatedError(*SITE_ERROR))
    about = kind + hashlib.sha256(message).digest() + _named(site)
    return b"".join([_MAGIC, about, hashlib.sha256(about + body).digest(), body])


def _refusal(error: FederatedError) -> bytes:
    return json.dumps({"rule": error.rule, "words": error.words, "signed": error.signed.hex()}).encode()


def _named(site: str) -> bytes:
    return hashlib.sha256(site.encode()).digest() if site else bytes(32)


def reply_in(response: bytes, site: str, message: bytes) -> bytes:
    """The reply that a response to `message` brings; `SiteRefused` where it brings a refusal."""
    about, check, body = response[len(_MAGIC) : _HEAD - 32], response[_HEAD - 32 : _HEAD], response[_HEAD:]
    kind, of, by = about[:1], about[1:33], about[33:]
    if not response.startswith(_MAGIC) or kind not in (_ANSWER, _REFUSAL):
        raise DamagedResponse("it does not begin as a response")
    if of != hashlib.sha256(message).digest():
        raise DamagedResponse("it is the response to another message")
    if check != hashlib.sha256(about + body).digest():
        raise DamagedResponse("it is not whole")
    if site and by not in (_named(""), _named(site)):
        raise DamagedResponse("it is the response of another site")
    if kind == _ANSWER:
        return body
    try:
        said = json.loads(body)
        rule, words, signed = str(said["rule"]), str(said["words"]), bytes.fromhex(said["signed"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedResponse("its refusal cannot be read") from None
    raise SiteRefused(site, printable(rule), printable(words), signed)


def is_answer(response: bytes) -> bool:
    """Whether a response of `respond` is an answer, not a refusal."""
    return response.startswith(_MAGIC + _ANSWER)


def printable(words: str) -> str:
    """At most 500 characters of another computer's words, none of which can act on a terminal."""
    return "".join(c if c.isprintable() else "?" for c in words[:500])


class InProcess:
    """Sites of this process, for simulations and tests: a transport that only calls.

    Parameters
    ----------
    sites : mapping of str to callable
        What answers, by name: ``SiteNode.reply``.
    threads : int, default=1
        How many sites answer at the same time.

    Examples
    --------
    >>> InProcess({"north": bytes.upper, "south": bytes.title}).exchange(b"two words")
    {'north': b'TWO WORDS', 'south': b'Two Words'}
    """

    def __init__(self, sites: Mapping[str, Reply], *, threads: int = 1) -> None:
        self.sites, self.threads = dict(sites), threads

    def exchange(self, message: bytes) -> Mapping[str, bytes]:
        """The replies of all sites."""
        if self.threads == 1:
            responses = [respond(reply, message) for reply in self.sites.values()]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                responses = list(pool.map(lambda reply: respond(reply, message), self.sites.values()))
        return {
            site: reply_in(response, site, message) for site, response in zip(self.sites, responses, strict=True)
        }
