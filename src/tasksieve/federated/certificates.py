"""Certificates that sites and coordinators sign themselves, for `https.py` where there is no authority."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..atomic import write_bytes
from ..optional import require

INSTALL = '"tasksieve[federated]"'


def write_certificate(
    folder: str | Path, name: str, hosts: Iterable[str] = (), *, days: int = 730
) -> tuple[Path, Path]:
    """Write a certificate and its private key.

    The certificate is signed by its own key: whoever is to trust it is given the certificate's file (never that of the
    key) and compares what ``openssl x509 -fingerprint`` says with its owner.

    Parameters
    ----------
    folder : path
    name : str
        Whom it is for: ``"coordinator"``, ``"north"``. It is in the names of both files, ``<name>.certificate.pem`` and
        ``<name>.key.pem``.
    hosts : iterable of str, optional
        Names and addresses of the computer that listens under it.
    days : int, default=730
        How long it is valid.

    Returns
    -------
    certificate, key : Path
    """
    x509 = _cryptography("x509")
    ec = _cryptography("hazmat.primitives.asymmetric.ec")
    hashes, serialization = (_cryptography(f"hazmat.primitives.{part}") for part in ("hashes", "serialization"))
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([_named(x509, host) for host in (name, *hosts)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files = Path(folder) / f"{name}.certificate.pem", Path(folder) / f"{name}.key.pem"
    write_bytes(files[0], certificate.public_bytes(pem))
    _write_secret(files[1], secret)
    return files


def _cryptography(part: str) -> Any:
    return require(f"cryptography.{part}", "certificates need", INSTALL)


def _named(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_secret(path: Path, content: bytes) -> None:
    """A file that nobody else could read at any moment."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
