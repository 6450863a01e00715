"""Define what a server is told when it starts, and refuse what would fail later."""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import InvalidRequestError
from holdfast.stores.provider import StoreOptions
from holdfast.webhdfs.users_file import UsersFile

_ALL_ADDRESSES = ("", "0.0.0.0", "::")
_LEAST_TRASH_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one process of a server does at the same time, at most.

    Attributes:
        connections: more are refused.
        threads: how many operations are carried out.
        waiting: how many more requests wait; others are sent to another server.
        uploads: how many files are received.
        head_s: how long the head of a request may take.
        request_s: how long a client waits for a change; later it is not begun. Hadoop's client waits for 60 seconds.
        body_s: how long an upload may pause. A task of Spark may compute for long between two row groups.
        answer_s: how long a client may take to receive a piece of an answer.
        grace_s: how long a server that stops waits for its requests.
    """

    connections: int = 4096
    threads: int = 64
    waiting: int = 2048
    uploads: int = 256
    head_s: float = 10.0
    request_s: float = 30.0
    body_s: float = 3600.0
    answer_s: float = 300.0
    grace_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How to serve one namespace. Every process of the server gets this value.

    Attributes:
        url, database, store_options: of the namespace: see `open_namespace`.
        host, port: where to listen; port 0 takes a free one.
        workers: the number of processes.
        users_file: groups and proxies: see `UsersFile`.
        believes_names: whether ``user.name`` alone proves a user; None for: on loopback.
        certificate, key: of the server, for HTTPS.
        client_ca: the authorities whose certificates prove users.
        access_log: where requests are logged, a line of JSON each; ``-`` for the standard output, empty for nowhere.
        trash_s: after how many seconds the trash is emptied; None for never.
        metrics_directory: where the processes of the server share their counters.
    """

    url: str
    database: str | None = None
    store_options: tuple[StoreOptions, ...] = ()
    host: str = "127.0.0.1"
    port: int = 9870
    workers: int = 1
    users_file: Path | None = None
    believes_names: bool | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    access_log: str = ""
    trash_s: float | None = None
    metrics_directory: str = ""
    limits: Limits = Limits()

    @property
    def does_believe_names(self) -> bool:
        """Whether ``user.name`` alone proves a user."""
        return is_loopback(self.host) if self.believes_names is None else self.believes_names

    @property
    def shown_host(self) -> str:
        """The host that people are shown: the name of this machine if the server listens on all addresses."""
        return os.uname().nodename if self.host in _ALL_ADDRESSES else self.host


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_settings(settings: ServerSettings) -> None:
    """Refuse what would fail or be unsafe later.

    Raises:
        InvalidRequestError: see the message.
    """
    if (settings.certificate is None) != (settings.key is None):
        raise InvalidRequestError("HTTPS needs a certificate and its key: give both")
    if settings.client_ca is not None and settings.certificate is None:
        raise InvalidRequestError("client certificates need HTTPS: give a certificate of the server, too")
    for path in (settings.certificate, settings.key, settings.client_ca, settings.users_file):
        if path is not None and not path.is_file():
            raise InvalidRequestError("the file does not exist: check the path", path=str(path))
    if settings.workers < 1:
        raise InvalidRequestError("a server has at least one worker: change it", workers=settings.workers)
    if settings.trash_s is not None and settings.trash_s < _LEAST_TRASH_S:
        raise InvalidRequestError(
            "clients count the age of trash in minutes: give at least one", trash_s=settings.trash_s
        )
    if settings.users_file is not None:
        UsersFile.read(settings.users_file)
    if settings.certificate is not None:
        _check_certificates(settings)
    if settings.access_log not in ("", "-"):
        os.close(open_access_log(settings.access_log))


def open_access_log(path: str) -> int:
    """Open a log to append to it, and return its descriptor; only its owner and group may read a new one.

    Raises:
        InvalidRequestError: it cannot be written.
    """
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise InvalidRequestError("the access log cannot be written: choose another place", path=path) from error


def _check_certificates(settings: ServerSettings) -> None:
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        assert settings.certificate is not None, "the caller has looked"
        context.load_cert_chain(settings.certificate, settings.key, password=_refuse_password)
        if settings.client_ca is not None:
            context.load_verify_locations(settings.client_ca)
    except OSError as error:  # ssl.SSLError is one
        raise InvalidRequestError(
            "the certificates cannot be used: give files in PEM form, and the key of the certificate, without a "
            "password",
            reason=str(error),
        ) from error


def _refuse_password() -> str:
    raise OSError("the key has a password")
