"""Serve an empty namespace by WebHDFS, to somebody else's clients."""

from __future__ import annotations

import http.client
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.s3_server import end_group, start_server
from tests.patience import wait_until

__all__ = ["ServedNamespace", "serve_namespace"]

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class ServedNamespace:
    """A namespace with a server at a port of this machine."""

    database: str
    superuser: str
    port: int

    @property
    def url(self) -> str:
        """The address for clients of WebHDFS."""
        return f"webhdfs://127.0.0.1:{self.port}"

    def open(self) -> Namespace:
        """Open the namespace beside its server, as the superuser."""
        return open_namespace(self.database, user=self.superuser, groups=[])

    def check(self) -> None:
        """Check that the namespace is undamaged, all bytes included."""
        with self.open() as namespace:
            report = namespace.check(reads=True)
        assert report.is_healthy, report


@contextmanager
def serve_namespace(folder: Path, *, superuser: str, users: str = "", trash: str = "") -> Iterator[ServedNamespace]:
    """Make a namespace in a folder, and serve it until the end of the block.

    Args:
        users: the content of the server's file of groups and proxies.
        trash: how long files stay in the trash, such as ``1d``.
    """
    database = f"sqlite:///{folder}/names.db"
    configuration = Configuration(name="served", data=str(folder / "data"), superuser=superuser)
    init_namespace(configuration, database, register=False)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    options = ["--trash", trash] if trash else []
    if users:
        (folder / "users.ini").write_text(users, encoding="utf-8")
        options += ["--users", str(folder / "users.ini")]
    catalog = folder / "catalog.json"
    catalog.write_text(json.dumps({"served": database}), encoding="utf-8")
    command = [sys.executable, "-m", "holdfast", "namespace", "serve", "served", "--port", str(port), *options]
    log = folder / "server.log"
    process = start_server(command, log, _ROOT, {"HOLDFAST_NAMESPACES": str(catalog)})
    try:
        failure = f"the server did not start: {log}"
        wait_until(lambda: _is_healthy(port), failure, over=lambda: process.poll() is not None)
        yield ServedNamespace(database, superuser, port)
    finally:
        end_group(process)


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
