"""Pairwise masks on words: what one site sends looks like noise, and the masks of all sites cancel in the sum.

Site i sends q_i + sum_{j > i} stream(k_ij) - sum_{j < i} stream(k_ij), modulo 2^64 and 2^32, where k_ij is a secret
that sites i and j share. The streams are keyed by the digest of the round, in which everything is contained that the
sites were asked: sites that were asked different things send masks that do not cancel, so none can be singled out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from .answer import Words
from .errors import FederatedError

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
