"""Pairwise masks on words: what one site sends looks like noise, and the masks of all sites cancel in the sum.

Site i sends q_i + sum_{j > i} stream(k_ij) - sum_{j < i} stream(k_ij), modulo 2^64 and 2^32, where k_ij is a secret
that sites i and j share. The streams are keyed by the digest of the round, in which everything is contained that the
sites were asked: sites that were asked different things send masks that do not cancel, so none can be singled out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from .answer import DUAL, FIRST_NUMBER, NO_DUAL, Words, misfits
from .errors import FederatedError
from .units import BINS

_DOMAIN = b"tasksieve masks 1"
SECRET = 32  # bytes


def stream(secret: bytes, context: bytes, n_long: int, n_short: int) -> Words:
    """Words that nobody without the secret can tell from noise: SHAKE-256 of the secret and the context."""
    if len(secret) != SECRET:
        raise FederatedError("keys", f"a shared secret has {SECRET} bytes")
    start = hashlib.shake_256(_DOMAIN + secret + len(context).to_bytes(8, "little") + context)
    noise = start.digest(8 * n_long + 4 * n_short)
    long = np.frombuffer(noise, "<u8", n_long).astype(np.uint64)
    return Words(long, np.frombuffer(noise, "<u4", n_short, 8 * n_long).astype(np.uint32))


def masked(words: Words, name: str, secrets: Mapping[str, bytes], context: bytes) -> Words:
    """The words of a site with its masks on.

    - `name`: Of the site; the masks of a pair have opposite signs by the order of their names.
    - `secrets`: Those it shares with each of the other sites, by their names.
    - `context`: Digest of the round. The same context must never be used for two different answers.
    """
    if name in secrets:
        raise FederatedError("keys", "a site shares no secret with itself")
    for other in sorted(secrets):
        noise = stream(secrets[other], context, len(words.long), len(words.short))
        words = words + noise if name < other else words - noise
    return words


def unfit_hidden(words: Words, secret: bytes, context: bytes) -> Words:
    """The words of a site whose numbers did not fit: noise of its own in their place, so that no sum means anything.

    The sum of the other sites' words, less that of all of them in larger units, would be this site's. Flags that are
    raised are noise that is not 0: a sum tells that some site has raised one, not how many.
    """
    flags = misfits(words)
    if not flags.any():
        return words
    noise = stream(secret, context, len(words.long), len(words.short))
    long = noise.long.copy()
    long[0] = words.long[0]
    long[1:FIRST_NUMBER] = np.where(flags, long[1:FIRST_NUMBER] | np.uint64(1), np.uint64(0))
    return Words(long, noise.short)


def no_dual_hidden(words: Words, secret: bytes, context: bytes) -> Words:
    """The words of a site that has no dual value at a point: noise of its own in their place.

    The sum of the other sites' dual values, less that of all of them at a point nearby, would be this site's.
    """
    if not words.long[NO_DUAL]:
        return words
    noise, long = stream(secret, context + b"dual", len(words.long), 0), words.long.copy()
    long[NO_DUAL] = noise.long[NO_DUAL] | np.uint64(1)
    long[DUAL] = noise.long[DUAL]
    return Words(long, words.short)


def largest_only(words: Words, secret: bytes, context: bytes) -> Words:
    """Histograms of exponents as a site sends them: noise that is not 0 up to its own bin, 0 above it.

    So the sum is 0 above the largest exponent of any site and noise below it, and shows nothing else.
    """
    noise = stream(secret, context, 0, len(words.short)).short | np.uint32(1)
    own = words.short.reshape(-1, BINS)
    up_to = np.cumsum(own[:, ::-1], axis=1, dtype=np.uint32)[:, ::-1].reshape(-1) > 0
    return Words(words.long, np.where(up_to, noise, np.uint32(0)))
