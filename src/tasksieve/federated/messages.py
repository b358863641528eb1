"""Signed messages: a round of questions from the coordinator, words from a site.

A message is 64 bytes of signature (Ed25519) and a packed header with arrays (`packing`). Who has written it is checked
before anything in it is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from .answer import Words
from .errors import FederatedError
from .keys import Agreement, PrivateKeys, PublicKeys
from .packing import Array, pack, unpack
from .question import BEFORE_SCALES, Round

PROTOCOL = 1
COORDINATOR = "coordinator"
_SIGNED = b"tasksieve signed message 1\n"
_SIGNATURE = 64


def seal(kind: str, sender: str, header: Mapping[str, Any], arrays: Mapping[str, Array], keys: PrivateKeys) -> bytes:
    """A signed message; the same content has the same bytes."""
    body = pack({**header, "message": kind, "from": sender, "protocol": PROTOCOL}, arrays)
    return keys.sign(_SIGNED + body) + body


def unseal(message: bytes, kind: str, sender: str, keys: PublicKeys) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a message of this kind that this sender has signed."""
    if len(message) <= _SIGNATURE:
        raise FederatedError("format", "this is no whole message")
    keys.verify(message[:_SIGNATURE], _SIGNED + message[_SIGNATURE:])
    header, arrays = unpack(message[_SIGNATURE:])
    if header.pop("protocol", None) != PROTOCOL:
        raise FederatedError("version", f"this message is of another version of the protocol, here it is {PROTOCOL}")
    if (header.pop("message", None), header.pop("from", None)) != (kind, sender):
        raise FederatedError("format", f"this is no {kind} from {sender}")
    return header, arrays


def seal_round(asked: Round, keys: PrivateKeys) -> bytes:
    """The coordinator's message to all sites."""
    return seal("round", COORDINATOR, *asked.packed(), keys)


def unseal_round(message: bytes, plan: Agreement) -> Round:
    """The round of a message: signed by the plan's coordinator, and about that plan."""
    asked = Round.from_packed(*unseal(message, "round", COORDINATOR, PublicKeys.from_line(plan.coordinator)))
    if asked.plan != plan.digest:
        raise FederatedError("plan", "these questions belong to another plan than the one that was agreed to")
    if any(units.sites != len(plan.sites) for units in asked.units):
        raise FederatedError("plan", "these questions are for another number of sites than the plan has")
    for question in asked.questions:
        question.check(plan.n_features)
    _check_scales(asked, plan)
    return asked


def _check_scales(asked: Round, plan: Agreement) -> None:
    """Refuse a round that does not standardise as the plan says."""
    pooled = getattr(plan, "standardize", "no") == "pooled"
    if not pooled and any(question.kind == "moments" for question in asked.questions):
        raise FederatedError("plan", "means and variances of columns are asked for, and the plan does not pool them")
    if asked.scales is None:
        if pooled and any(question.kind not in BEFORE_SCALES for question in asked.questions):
            raise FederatedError("plan", "the plan has pooled standardisation, and these questions name no scales")
    elif not pooled or asked.scales.shape != (plan.n_features,):
        raise FederatedError("plan", "these questions name scales of columns that the plan does not have")


def seal_words(words: Words, asked: Round, site: str, keys: PrivateKeys) -> bytes:
    """A site's message: what it signs are the words of its answers to this round, in this order."""
    header = {"number": asked.number, "round": asked.digest().hex(), "plan": asked.plan.hex()}
    return seal("words", site, header, {"long": words.long, "short": words.short}, keys)


def unseal_words(message: bytes, asked: Round, site: str, keys: PublicKeys) -> Words:
    """The words of a site's answers to a round, and to no other."""
    try:
        header, arrays = unseal(message, "words", site, keys)
    except FederatedError as error:
        raise FederatedError(error.rule, f"the reply of {site} is not used: {error.words}") from None
    if header != {"number": asked.number, "round": asked.digest().hex(), "plan": asked.plan.hex()}:
        raise FederatedError("replay", f"{site} has answered other questions than those of this round")
    kinds = {name: (array.dtype, array.ndim) for name, array in arrays.items()}
    if kinds != {"long": (np.dtype("<u8"), 1), "short": (np.dtype("<u4"), 1)}:
        raise FederatedError("format", "these are no words")
    return Words(arrays["long"].astype(np.uint64), arrays["short"].astype(np.uint32))


def seal_refusal(error: FederatedError, message: bytes, site: str, keys: PrivateKeys) -> bytes:
    """A site's refusal of a message: rule and words, signed, so that nobody else can refuse in its name."""
    header = {"of": message_digest(message), "rule": error.rule, "words": error.words}
    return seal("refusal", site, header, {}, keys)


def unseal_refusal(refusal: bytes, message: bytes, site: str, keys: PublicKeys) -> tuple[str, str]:
    """Rule and words of a refusal of this message that the site has signed."""
    header, _ = unseal(refusal, "refusal", site, keys)
    if header.get("of") != message_digest(message):
        raise FederatedError("replay", f"{site} has refused other questions than these")
    return str(header.get("rule")), str(header.get("words"))


def message_digest(message: bytes) -> str:
    """SHA-256 of a message, by which logs know it."""
    return hashlib.sha256(message).hexdigest()
