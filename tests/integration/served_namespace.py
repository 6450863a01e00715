"""Serve an empty namespace by WebHDFS to somebody else's clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.namespace import Namespace
from tests import webhdfs_server

__all__ = ["ServedNamespace", "serve_namespace"]


@dataclass(frozen=True)
class ServedNamespace:
    """A namespace with one server."""

    namespace: webhdfs_server.ServedNamespace
    port: int

    @property
    def url(self) -> str:
        """The address for Hadoop's clients."""
        return f"webhdfs://127.0.0.1:{self.port}"

    def open(self) -> Namespace:
        """Open the namespace beside its server, as the superuser."""
        return self.namespace.open(self.namespace.superuser)


@contextmanager
def serve_namespace(folder: Path, *, superuser: str, users: str = "", trash: str = "") -> Iterator[ServedNamespace]:
    """Make a namespace in a folder, with permissions, and serve it until the end of the block; then check it.

    Args:
        users: the content of the server's file of groups and proxies.
        trash: how long files stay in the trash, such as ``1d``.
    """
    options = ["--trash", trash] if trash else []
    if users:
        (folder / "users.ini").write_text(users, encoding="utf-8")
        options += ["--users", str(folder / "users.ini")]
    with webhdfs_server.ServedNamespace(folder, permissions=True, superuser=superuser) as namespace:
        with namespace.serve(*options) as server:
            yield ServedNamespace(namespace, server.port)
