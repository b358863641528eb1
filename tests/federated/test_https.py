"""HTTPS: only the coordinator is answered, only the sites are asked; lost connections are asked again."""

from __future__ import annotations

import datetime
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from transport_helpers import certificates, https_coordinator, https_site

from tasksieve.federated import https
from tasksieve.federated.certificates import write_certificate
from tasksieve.federated.errors import FederatedError, SiteSilent
from tasksieve.federated.https import HttpsSites
from tasksieve.messages import ParameterError


@pytest.fixture
def files(tmp_path):
    return certificates(tmp_path, "north", "south")


def coordinator(files, site, own="coordinator", patience=5.0, host="localhost"):
    return https_coordinator({"north": f"https://{host}:{site.address[1]}"}, files, patience, own)


@contextmanager
def connected(context, site):
    with (
        socket.create_connection(site.address, timeout=5) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as connection,
    ):
        yield connection


def never(message):
    raise AssertionError("a stranger was answered")


def test_keys_are_for_their_owner_alone(files):
    for certificate, key in files.values():
        assert key.stat().st_mode & 0o077 == 0
        assert b"PRIVATE" not in certificate.read_bytes()


def test_a_certificate_that_the_site_does_not_trust(files):
    certificate = pytest.raises(FederatedError, match=r"^certificate: site north does not accept")
    with https_site(never, files["north"], files["coordinator"][0]) as site, certificate:
        coordinator(files, site, own="south").exchange(b"x" * 200_000)


def test_no_certificate(files):
    with https_site(never, files["north"], files["coordinator"][0]) as site:
        context = ssl.create_default_context(cafile=files["north"][0])
        with pytest.raises((ssl.SSLError, ConnectionError)), connected(context, site) as connection:
            connection.sendall(b"POST /message HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
            assert connection.recv(100) == b""
            raise ConnectionError("closed without a word")


def test_another_certificate_of_the_same_authority_is_not_the_coordinator(tmp_path):
    """An authority has signed all sites; one of them asks another."""
    files = signed_by_one_authority(tmp_path, "coordinator", "north", "south")
    with https_site(bytes.upper, files["north"], tmp_path / "authority.pem") as site:
        address = {"north": f"https://localhost:{site.address[1]}"}
        for own, accepted in (("coordinator", True), ("south", False)):
            transport = HttpsSites(
                address, certificate=files[own][0], key=files[own][1], trusted=tmp_path / "authority.pem", patience=5
            )
            if accepted:
                assert transport.exchange(b"abc") == {"north": b"ABC"}
            else:
                with pytest.raises(FederatedError, match=r"^certificate: site north: this certificate is not that of"):
                    transport.exchange(b"abc")


def signed_by_one_authority(folder, *names):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.datetime.now(datetime.UTC)
    secret = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])

    def signed(name, key, authority):
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        )
        return builder.sign(secret, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    (folder / "authority.pem").write_bytes(signed("authority", secret, True))
    files = {}
    for name in names:
        key = ec.generate_private_key(ec.SECP256R1())
        files[name] = folder / f"{name}.pem", folder / f"{name}.key"
        files[name][0].write_bytes(signed(name, key, False))
        plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        files[name][1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    return files


def test_a_site_that_is_not_the_one(files, tmp_path):
    (tmp_path / "x").mkdir()
    stranger = write_certificate(tmp_path / "x", "north", ["localhost"])
    certificate = pytest.raises(FederatedError, match=r"^certificate: what answers at the address of site north")
    with https_site(never, stranger, files["coordinator"][0]) as site, certificate:
        coordinator(files, site).exchange(b"abc")


def test_a_host_that_the_certificate_does_not_name(tmp_path):
    files = {name: write_certificate(tmp_path, name, ["elsewhere.example"]) for name in ("coordinator", "north")}
    certificate = pytest.raises(FederatedError, match=r"^certificate: what answers .*localhost")
    with https_site(never, files["north"], files["coordinator"][0]) as site, certificate:
        coordinator(files, site).exchange(b"abc")


def test_a_site_that_starts_late_and_restarts(files):
    with https_site(bytes.upper, files["north"], files["coordinator"][0]) as site:
        port = site.address[1]
        transport = coordinator(files, site)
    replies = []
    asking = threading.Thread(target=lambda: replies.append(transport.exchange(b"abc")))
    asking.start()
    time.sleep(0.2)
    for _ in range(2):
        with https_site(bytes.upper, files["north"], files["coordinator"][0], port=port):
            asking.join(5)
            assert transport.exchange(b"def") == {"north": b"DEF"}
    assert replies == [{"north": b"ABC"}]
    transport.patience = 0.2
    with pytest.raises(SiteSilent, match="no reply from north"):
        transport.exchange(b"ghi")


def test_a_slow_site_is_asked_again_and_computes_once(files, monkeypatch):
    monkeypatch.setattr(https, "_HELD", 0.05)
    asked = []

    def slow(message):
        asked.append(message)
        time.sleep(0.5)
        return message.upper()

    with https_site(slow, files["north"], files["coordinator"][0]) as site:
        assert coordinator(files, site).exchange(b"abc") == {"north": b"ABC"}
        assert coordinator(files, site).exchange(b"abc") == {"north": b"ABC"}
    assert asked == [b"abc"]


def test_strangers_who_say_nothing_hold_up_nobody(files):
    with https_site(bytes.upper, files["north"], files["coordinator"][0]) as site:
        silent = [socket.create_connection(site.address) for _ in range(5)]
        started = time.monotonic()
        assert coordinator(files, site).exchange(b"abc") == {"north": b"ABC"}
        assert time.monotonic() - started < 4
        for connection in silent:
            connection.close()


class Wire(threading.Thread):
    """Between coordinator and site: cuts the first connections after some bytes, either way."""

    def __init__(self, port, cuts):
        super().__init__(daemon=True)
        self.port, self.cuts = port, list(cuts)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()

    def run(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.port))
            up, down = self.cuts.pop(0) if self.cuts else (1 << 40, 1 << 40)
            for source, target, most in ((near, far, up), (far, near, down)):
                threading.Thread(target=self.carry, args=(source, target, most), daemon=True).start()

    def carry(self, source, target, most):
        try:
            while most > 0 and (data := source.recv(min(most, 65536))):
                target.sendall(data)
                most -= len(data)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def test_connections_that_are_cut_at_any_byte(files):
    whole = 1 << 40
    cuts = [(0, whole), (100, whole), (whole, 50), (whole, 1000), (900, whole), (2000, whole)]
    cuts += [(whole, 3000), (whole, 0)]
    with https_site(bytes.upper, files["north"], files["coordinator"][0]) as site:
        wire = Wire(site.address[1], cuts)
        wire.start()
        message = b"abc" * 3000
        transport = https_coordinator({"north": f"https://localhost:{wire.address[1]}"}, files, 20.0)
        assert transport.exchange(message) == {"north": message.upper()}
        assert wire.cuts == []
        wire.listener.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /message HTTP/1.0\r\n\r\n", b"501"),
        (b"POST /other HTTP/1.0\r\nContent-Length: 0\r\n\r\n", b"400"),
        (b"POST /message HTTP/1.0\r\n\r\n", b"400"),
        (b"POST /message HTTP/1.0\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"POST /message HTTP/1.0\r\nContent-Length: 99999999999999\r\n\r\n", b"413"),
    ],
)
def test_requests_that_are_none(files, request_bytes, status):
    with https_site(never, files["north"], files["coordinator"][0]) as site:
        context = ssl.create_default_context(cafile=files["north"][0])
        context.load_cert_chain(*files["coordinator"])
        with connected(context, site) as connection:
            connection.sendall(request_bytes)
            assert connection.recv(100).split()[1] == status


@pytest.mark.parametrize("address", ["http://a:1", "a:1", "https://", "https://a/b", "https://a?b"])
def test_addresses(files, address):
    with pytest.raises(ParameterError, match="https://host:8443"):
        https_coordinator({"north": address}, files, 1.0)


@pytest.mark.slow  # sites in processes of their own, forked: test_faults.py
def test_a_site_in_another_process(files, tmp_path):
    """What a site runs is a few lines."""
    program = f"""
        from tasksieve.federated.https import HttpsSite
        site = HttpsSite(bytes.upper, certificate={str(files["north"][0])!r}, key={str(files["north"][1])!r},
                         trusted={str(files["coordinator"][0])!r}, coordinator="coordinator", host="127.0.0.1", port=0)
        print(site.address[1], flush=True)
        site.serve()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())
            transport = https_coordinator({"north": f"https://localhost:{port}"}, files, 10.0)
            assert transport.exchange(b"abc") == {"north": b"ABC"}
        finally:
            process.kill()
