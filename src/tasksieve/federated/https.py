"""Sites that answer over HTTPS; both ends show a certificate (mutual TLS 1.3), with Python's standard library alone.

A site listens and answers the coordinator only. A question is posted; a site that needs longer than some seconds says
"not yet" (202), and the coordinator posts the same question again, so no connection stands idle for long enough to be
cut. A lost connection is a question asked again: answers are functions of the question, and the latest are kept.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from ..messages import ParameterError
from .errors import FederatedError, SiteSilent
from .transport import LONGEST, DamagedResponse, Reply, is_answer, reply_in, respond

PATH = "/message"
_CONNECTIONS = 32  # at the same time, at a site
_KEPT = 4  # responses, at a site
_HELD = 10.0  # seconds until a site says "not yet"
_TIMEOUT = 3 * _HELD  # seconds without a byte, either side
_LOG = logging.getLogger("tasksieve.federated")

PathLike = str | Path


def _context(
    protocol: int, certificate: PathLike, key: PathLike, trusted: PathLike | Iterable[PathLike]
) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificate, key)
    for file in [trusted] if isinstance(trusted, str | Path) else trusted:
        context.load_verify_locations(file)
    return context


class HttpsSites:
    """The coordinator's side: a transport to sites that listen as `HttpsSite`.

    Parameters
    ----------
    addresses : mapping of str to str
        ``"https://host:port"`` of each site by its name. The host must be one of those in the site's certificate.
    certificate, key : path
        PEM files of the coordinator's certificate and its private key.
    trusted : path or list of paths
        PEM files of the sites' certificates, or of the authority that has signed them.
    patience : float, default=600
        Seconds until an exchange ends with `SiteSilent`.
    pause : float, default=0.5
        Seconds between two attempts.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        *,
        certificate: PathLike,
        key: PathLike,
        trusted: PathLike | Iterable[PathLike],
        patience: float = 600.0,
        pause: float = 0.5,
    ) -> None:
        self.addresses = {site: _address(address) for site, address in addresses.items()}
        self.patience, self.pause = patience, pause
        self._context = _context(ssl.PROTOCOL_TLS_CLIENT, certificate, key, trusted)

    def exchange(self, message: bytes) -> Mapping[str, bytes]:
        """The replies of all sites to a message."""
        over, end = threading.Event(), time.monotonic() + self.patience
        pool = ThreadPoolExecutor(max(1, len(self.addresses)))
        try:
            asked = {site: pool.submit(self._ask, site, message, end, over) for site in self.addresses}
            wait(asked.values(), return_when=FIRST_EXCEPTION)
            for future in asked.values():  # a refusal ends the exchange, whoever else is silent
                if future.done() and (error := future.exception()) is not None:
                    raise error
            replies = {site: future.result() for site, future in asked.items()}
        finally:
            over.set()
            pool.shutdown(wait=False, cancel_futures=True)
        if missing := [site for site, reply in replies.items() if reply is None]:
            raise SiteSilent(missing)
        return {site: reply for site, reply in replies.items() if reply is not None}

    def _ask(self, site: str, message: bytes, end: float, over: threading.Event) -> bytes | None:
        """The reply of one site, None if there is none until the end."""
        trouble = ""
        while not over.is_set() and (left := end - time.monotonic()) > 0.0:
            try:
                status, body = self._post(site, message, min(left, _TIMEOUT))
                if status == 200:
                    return reply_in(body, site, message)
                found = "it is at work" if status == 202 else f"it says {status}"
                if status in (403, 413):
                    raise FederatedError("certificate" if status == 403 else "length", f"site {site}: {_told(body)}")
            except ssl.SSLCertVerificationError as error:
                words = f"what answers at the address of site {site} cannot show that it is this site"
                raise FederatedError("certificate", f"{words} ({error.verify_message})") from None
            except ssl.SSLError as error:
                if "ALERT" in (error.reason or ""):
                    words = f"site {site} does not accept the certificate of this coordinator ({error.reason})"
                    raise FederatedError("certificate", words) from None
                found = str(error)
            except (OSError, http.client.HTTPException, DamagedResponse) as error:
                found = str(error) or type(error).__name__
            if found != trouble:
                _LOG.info("Site %s: %s; the question will be asked again.", site, found)
                trouble = found
            over.wait(min(self.pause, max(0.0, end - time.monotonic())))
        return None

    def _post(self, site: str, message: bytes, timeout: float) -> tuple[int, bytes]:
        host, port = self.addresses[site]
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._context)
        try:
            try:
                connection.request("POST", PATH, message, {"Content-Type": "application/octet-stream"})
            except (BrokenPipeError, ConnectionResetError):
                if connection.sock is not None:  # TLS 1.3 says only now why a certificate is not accepted
                    connection.sock.recv(1)
                raise
            response = connection.getresponse()
            return response.status, response.read(LONGEST)
        finally:
            connection.close()


def _address(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    if parts.scheme != "https" or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise ParameterError("addresses", "must be like 'https://host:8443'", address)
    return parts.hostname, parts.port or 443


def _told(body: bytes) -> str:
    return "".join(c if c.isprintable() else "?" for c in body[:200].decode(errors="replace"))


class HttpsSite:
    """A site's side: it listens, and answers the coordinator.

    Parameters
    ----------
    reply : callable
        What answers a message: ``SiteNode.reply``. It is called by one thread at a time.
    certificate, key : path
        PEM files of the site's certificate, which names its host, and its private key.
    trusted : path or list of paths
        PEM files of the coordinator's certificate, or of the authority that has signed it.
    coordinator : str
        The name in the coordinator's certificate. An authority signs others, too: they are refused.
    host : str, default=""
        The address to listen at, by default all of this computer.
    port : int, default=8443
        0 for any that is free: `address` says which.
    """

    def __init__(
        self,
        reply: Reply,
        *,
        certificate: PathLike,
        key: PathLike,
        trusted: PathLike | Iterable[PathLike],
        coordinator: str,
        host: str = "",
        port: int = 8443,
    ) -> None:
        context = _context(ssl.PROTOCOL_TLS_SERVER, certificate, key, trusted)
        self._server = _Server((host, port), context, coordinator, _Responses(reply))
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host and port."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def serve(self) -> None:
        """Answer until `close` is called by another thread, or for ever."""
        self._server.serve_forever(poll_interval=0.1)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Responses:
    """The latest responses of a site by the digest of the question, each computed once, one after the other."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._worker = ThreadPoolExecutor(1)
        self._lock = threading.Lock()
        self._kept: dict[bytes, Future[bytes]] = {}

    def get(self, message: bytes) -> bytes | None:
        """The response, None if it is not there within some seconds."""
        digest = hashlib.sha256(message).digest()
        with self._lock:
            future = self._kept.pop(digest, None)
            if future is None:
                future = self._worker.submit(respond, self._reply, message)
            self._kept[digest] = future
            for old in list(self._kept)[:-_KEPT]:
                self._kept.pop(old).cancel()
        try:
            response = future.result(timeout=_HELD)
        except TimeoutError:
            return None
        if not is_answer(response):  # its cause may be gone when the question is asked again
            with self._lock:
                self._kept.pop(digest, None)
        return response

    def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)


class _Server(ThreadingHTTPServer):
    """Handshakes are done by the threads of connections, so that a stranger who says nothing holds up nobody."""

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, coordinator: str, responses: _Responses
    ) -> None:
        self.context, self.coordinator, self.responses = context, coordinator, responses
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = self.socket.accept()
        connection.settimeout(_TIMEOUT)
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOG.info("A connection from %s came to nothing.", client_address[0], exc_info=True)

    def server_close(self) -> None:
        super().server_close()
        self.responses.close()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "tasksieve", ""

    def setup(self) -> None:
        self.request.do_handshake()
        super().setup()

    def do_POST(self) -> None:
        """The response to a message, or why there is none."""
        if self.server.coordinator not in _names(self.request.getpeercert()):
            return self._send(403, b"this certificate is not that of the coordinator")
        length = self.headers.get("Content-Length", "")
        if self.path != PATH or not length.isdecimal():
            return self._send(400, b"this is no message")
        if int(length) > LONGEST:
            return self._send(413, b"this message is too long")
        message = self.rfile.read(int(length))
        if len(message) < int(length):
            return None  # the connection was lost
        response = self.server.responses.get(message)
        return self._send(202, b"not yet") if response is None else self._send(200, response)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        _LOG.debug(format, *args)


def _names(certificate: Mapping[str, Any] | None) -> set[str]:
    """The names that a certificate is made out to."""
    if certificate is None:
        return set()
    names = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
    return names | {value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"}
