"""Keys: lines and files, signatures, secrets of pairs."""

from __future__ import annotations

import stat
import sys

import pytest
from federated_sites import fixed_keys

from tasksieve.federated.errors import FederatedError
from tasksieve.federated.keys import PrivateKeys, PublicKeys

pytest.importorskip("cryptography")


def test_keys_are_kept_in_a_file_of_their_owner(tmp_path):
    keys = PrivateKeys.create()
    keys.write(tmp_path / "keys.json")
    assert PrivateKeys.read(tmp_path / "keys.json") == keys
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        PrivateKeys.create().write(tmp_path / "keys.json")
    assert keys.signing.hex() not in repr(keys)
    assert PrivateKeys.create() != keys
    (tmp_path / "other.json").write_text('{"format": "tasksieve-keys", "version": 1, "signing": "ab"}')
    with pytest.raises(FederatedError, match="no file of keys"):
        PrivateKeys.read(tmp_path / "other.json")


def test_public_keys_are_one_line():
    public = fixed_keys("a").public(bytes(range(32)))
    assert PublicKeys.from_line(f" {public.line()}\n") == public
    assert public.line() != fixed_keys("a").public().line()
    assert public.fingerprint() == fixed_keys("a").public().fingerprint() != fixed_keys("b").public().fingerprint()
    for line in ("", "...", public.line()[:-4], public.line()[19:], public.line()[:-3] + "***"):
        with pytest.raises(FederatedError, match="no line of public keys"):
            PublicKeys.from_line(line)


def test_signatures():
    keys, other = fixed_keys("a"), fixed_keys("b")
    signature = keys.sign(b"words")
    keys.public().verify(signature, b"words")
    for public, signed, content in (
        (other.public(), signature, b"words"), (keys.public(), signature, b"word"),
        (keys.public(), signature[:-1], b"words"), (keys.public(), other.sign(b"words"), b"words"),
    ):  # fmt: skip
        with pytest.raises(FederatedError, match="signature"):
            public.verify(signed, content)


def test_each_pair_has_a_secret_of_its_own():
    names = ["a", "b", "c"]
    sites = {name: fixed_keys(name).public() for name in names}
    found = {name: fixed_keys(name).secrets(name, sites) for name in names}
    assert found["a"]["b"] == found["b"]["a"]
    assert len({secret for own in found.values() for secret in own.values()}) == 3
    changed = {**sites, "b": fixed_keys("b").public(b"1" * 32)}  # other data, other masks
    assert fixed_keys("a").secrets("a", changed)["b"] != found["a"]["b"]
    assert fixed_keys("a").secrets("a", changed)["c"] == found["a"]["c"]
    with pytest.raises(FederatedError, match="no secret"):
        fixed_keys("a").secrets("a", {**sites, "b": PublicKeys(bytes(32), bytes(32))})


def test_digests_of_data_are_salted():
    one, two = fixed_keys("a"), fixed_keys("b")
    assert one.data_digest([b"rows"]) == one.data_digest([b"rows"])
    assert one.data_digest([b"rows"]) != two.data_digest([b"rows"])
    assert one.data_digest([b"ro", b"ws"]) != one.data_digest([b"rows"])


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    with pytest.raises(ImportError, match=r"pip install tasksieve\[federated\]"):
        fixed_keys("a").sign(b"")
