"""Put TLS in front of a plain HTTP server, with certificates of a private authority.

Worked composition::

    authority = Authority(directory)
    with MotoServer() as server, TlsFront(server.endpoint_url, *authority.issue("127.0.0.1")) as front:
        store = S3Store("b", dataclasses.replace(server.options, endpoint_url=front.url, ca_bundle=authority.bundle))
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import ssl
import threading
from collections.abc import Coroutine
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

T = TypeVar("T")
_DAY = timedelta(days=1)
_CHUNK_BYTES = 64 * 1024
_STOP_S = 10.0


class Authority:
    """A certificate authority for tests, which stores its private keys unprotected in `directory`.

    Attributes:
        bundle: path of the authority's own certificate, for clients.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "holdfast tests")])
        certificate = self._signed(self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=None))
        self.bundle = str(directory / "authority.pem")
        Path(self.bundle).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, expired: bool = False) -> tuple[str, str]:
        """Issue a certificate for a host name or an address; return its path and its key's path."""
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            alternative = x509.DNSName(name)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([alternative])
        certificate = self._signed(subject, key.public_key(), names, expired=expired)
        stem = self._directory / f"{name}{'-expired' if expired else ''}"
        paths = f"{stem}.pem", f"{stem}.key"
        Path(paths[0]).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        Path(paths[1]).write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return paths

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType, expired: bool = False
    ) -> x509.Certificate:
        now = datetime.now(timezone.utc)
        ends = now - _DAY if expired else now + 30 * _DAY
        builder = x509.CertificateBuilder(issuer_name=self._name, subject_name=subject, public_key=key)
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - 3 * _DAY)
        return builder.not_valid_after(ends).add_extension(extension, critical=False).sign(self._key, hashes.SHA256())


class TlsFront:
    """A server that accepts TLS connections on a free loopback port and forwards their bytes to a plain HTTP server.

    Guarantee: after the block, its thread and its connections are closed.

    Args:
        target: url of the HTTP server.
        certificate: path of the server certificate.
        key: path of the certificate's key.
    """

    def __init__(self, target: str, certificate: str, key: str) -> None:
        parts = urlsplit(target)
        self._target = str(parts.hostname), int(parts.port or 80)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Return the endpoint for TLS clients."""
        return f"https://127.0.0.1:{self._port}"

    def __enter__(self) -> TlsFront:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context))
        self._port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_S)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_STOP_S)

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await asyncio.sleep(0)  # let the task of a new connection start: only a started task closes its connection
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close their sockets in the next iteration of the loop

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        ends = [to_client]
        try:
            with contextlib.suppress(OSError):
                server, to_server = await asyncio.open_connection(*self._target)
                ends.append(to_server)
                await asyncio.gather(_pass_on(client, to_server), _pass_on(server, to_client))
        finally:
            for end in ends:
                end.transport.abort()  # closes both directions without waiting for the peer
            await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy all bytes from `source` to `target`, then close `target`, so that the other direction ends as well."""
    with contextlib.suppress(OSError):
        while data := await source.read(_CHUNK_BYTES):
            target.write(data)
            await target.drain()
    target.close()
