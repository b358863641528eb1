"""Keys of sites and coordinators: Ed25519 signs messages, X25519 gives each pair of sites a secret of its own.

Needs `cryptography`. A plan holds one line of public keys for each site, with a salted digest of its data: so what the
sites agree to, and every mask, is bound to these keys and these data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..optional import require
from .errors import FederatedError
from .masks import SECRET

FORMAT = "tasksieve-keys"
_LINE = "tasksieve-public-1:"
_SIZE = 32  # bytes of each key, of a salt, of a digest


class Agreement(Protocol):
    """What messages need to know of a plan; `Plan` has it."""

    @property
    def digest(self) -> bytes: ...

    @property
    def masked(self) -> bool: ...

    @property
    def n_features(self) -> int: ...

    @property
    def sites(self) -> Mapping[str, str]: ...

    @property
    def coordinator(self) -> str: ...


@dataclass(frozen=True)
class PublicKeys:
    """What others know of a site or a coordinator.

    Parameters
    ----------
    signing, exchange : bytes
        Public keys of Ed25519 and X25519.
    data : bytes
        Salted digest of the data; zeros for a coordinator, which has none.
    """

    signing: bytes
    exchange: bytes
    data: bytes = bytes(_SIZE)

    def __post_init__(self) -> None:
        if any(len(part) != _SIZE for part in (self.signing, self.exchange, self.data)):
            raise FederatedError("keys", f"public keys and digests have {_SIZE} bytes each")

    def line(self) -> str:
        """As one line of text, for a plan."""
        return _LINE + base64.urlsafe_b64encode(self.signing + self.exchange + self.data).decode()

    @classmethod
    def from_line(cls, line: str) -> PublicKeys:
        """The keys of a line."""
        try:
            raw = base64.b64decode(line.strip().removeprefix(_LINE), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if not line.strip().startswith(_LINE) or len(raw) != 3 * _SIZE:
            raise FederatedError("keys", "this is no line of public keys")
        return cls(raw[:_SIZE], raw[_SIZE : 2 * _SIZE], raw[2 * _SIZE :])

    def fingerprint(self) -> str:
        """Eight groups of four letters, to be read to each other on the telephone: of the keys, not of the data."""
        found = hashlib.sha256(b"tasksieve fingerprint 1" + self.signing + self.exchange).hexdigest()[:32]
        return " ".join(found[k : k + 4] for k in range(0, 32, 4))

    def verify(self, signature: bytes, content: bytes) -> None:
        """Refuse content that the owner of these keys has not signed."""
        ed25519, invalid = _library("hazmat.primitives.asymmetric.ed25519"), _library("exceptions").InvalidSignature
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, content)
        except (invalid, ValueError):
            raise FederatedError("signature", "this message is not signed by whom it should be from") from None


@dataclass(frozen=True, repr=False)
class PrivateKeys:
    """The keys that a site or a coordinator keeps, and a salt for digests of its data.

    Parameters
    ----------
    signing, exchange, salt : bytes
        32 bytes each.
    """

    signing: bytes
    exchange: bytes
    salt: bytes

    @classmethod
    def create(cls) -> PrivateKeys:
        """New keys, from the random numbers of the operating system."""
        return cls(*(secrets.token_bytes(_SIZE) for _ in range(3)))

    @classmethod
    def read(cls, path: str | Path) -> PrivateKeys:
        """The keys of a file."""
        try:
            given = json.loads(Path(path).read_text(encoding="utf-8"))
            parts = [bytes.fromhex(given[name]) for name in ("signing", "exchange", "salt")]
            known = given["format"] == FORMAT and given["version"] == 1 and all(len(part) == _SIZE for part in parts)
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise FederatedError("keys", f"{path} is no file of keys")
        return cls(*parts)

    def write(self, path: str | Path) -> None:
        """To a new file that nobody else can read; a file that is there already is left alone."""
        content = {"format": FORMAT, "version": 1}
        content |= {name: getattr(self, name).hex() for name in ("signing", "exchange", "salt")}
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def public(self, data: bytes = bytes(_SIZE)) -> PublicKeys:
        """The public keys that belong to these.

        - `data`: Salted digest of the data (`data_digest`).
        """
        return PublicKeys(
            self._signing().public_key().public_bytes_raw(), self._exchange().public_key().public_bytes_raw(), data
        )

    def data_digest(self, pieces: Iterable[bytes]) -> bytes:
        """HMAC-SHA-256 of data under the salt: who does not know the salt cannot try guesses."""
        code = hmac.new(self.salt, b"tasksieve data 1", "sha256")
        for piece in pieces:
            code.update(len(piece).to_bytes(8, "little"))
            code.update(piece)
        return code.digest()

    def own_secret(self, purpose: str = "noise") -> bytes:
        """A secret that nobody else has: for noise of its own, for the seals of its log."""
        return hmac.digest(self.exchange, f"tasksieve {purpose} 1".encode(), "sha256")

    def sign(self, content: bytes) -> bytes:
        """A signature of 64 bytes; the same content has the same."""
        return bytes(self._signing().sign(content))

    def secrets(self, name: str, sites: Mapping[str, PublicKeys]) -> dict[str, bytes]:
        """The secrets of site `name` with each of the others: X25519, and HKDF over names, keys and data of both."""
        hashes = _library("hazmat.primitives.hashes")
        hkdf = _library("hazmat.primitives.kdf.hkdf").HKDF
        x25519 = _library("hazmat.primitives.asymmetric.x25519")
        found = {}
        for other in sorted(set(sites) - {name}):
            try:
                shared = self._exchange().exchange(x25519.X25519PublicKey.from_public_bytes(sites[other].exchange))
            except ValueError:
                raise FederatedError("keys", f"no secret can be shared with the keys of {other}") from None
            both = {each: sites[each].line() for each in (name, other)}
            about = b"tasksieve pair 1" + json.dumps(both, sort_keys=True).encode()
            found[other] = bytes(hkdf(algorithm=hashes.SHA256(), length=SECRET, salt=None, info=about).derive(shared))
        return found

    def _signing(self) -> Any:
        return _library("hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey.from_private_bytes(self.signing)

    def _exchange(self) -> Any:
        return _library("hazmat.primitives.asymmetric.x25519").X25519PrivateKey.from_private_bytes(self.exchange)


def roster(plan: Agreement) -> dict[str, PublicKeys]:
    """The public keys of all sites of a plan; no key may belong to two of them."""
    found = {name: PublicKeys.from_line(line) for name, line in plan.sites.items()}
    own = [*found.values(), PublicKeys.from_line(plan.coordinator)]
    for part in ("signing", "exchange"):
        if len({getattr(keys, part) for keys in own}) < len(own):
            raise FederatedError("keys", "two of those in the plan have the same key")
    return found


def _library(module: str) -> Any:
    return require(f"cryptography.{module}", "messages between sites need", "tasksieve[federated]")
