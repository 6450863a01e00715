"""Hadoop's client of WebHDFS, as PySpark brings it, for several users of one server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.integration.hadoop_jvm import Jvm
from tests.integration.served_namespace import ServedNamespace, serve_namespace
from tests.integration.webhdfs_calls import WebHdfsCalls, java_class_of
from tests.unit.namespace.hdfs_cases import GROUPS, SUPERUSER

__all__ = ["HadoopClients", "hadoop_clients", "raises"]

USERS = "[groups]\n" + "".join(f"{user} = {', '.join(groups)}\n" for user, groups in GROUPS.items())


class HadoopClients:
    """A JVM with a client for each user.

    Attributes:
        fs: of the superuser.
        calls: those of the recorded cases.
    """

    def __init__(self, jvm: Jvm, served: ServedNamespace) -> None:
        self.jvm = jvm
        self.served = served
        self.conf = jvm.hadoop.conf.Configuration()
        self.conf.set("fs.permissions.umask-mode", "000")
        self.conf.set("fs.defaultFS", served.url)
        self._clients = {user: self._connect(user) for user in GROUPS}
        self.fs = self._clients[SUPERUSER]
        self.calls = WebHdfsCalls(jvm.java, self._clients)

    def _connect(self, user: str) -> Any:
        return self.jvm.fs.FileSystem.newInstance(self.jvm.java.java.net.URI(self.served.url), self.conf, user)

    def of(self, user: str) -> Any:
        """Return the client of a user."""
        return self._clients[user]

    def path(self, path: str) -> Any:
        """Return a path of Java."""
        return self.jvm.fs.Path(path)

    def write(self, path: str, data: bytes, *, block_bytes: int = 128 * 1024 * 1024) -> None:
        """Write a file as the superuser."""
        stream = self.fs.create(self.path(path), True, 4096, 1, block_bytes)
        for start in range(0, len(data), 1_000_000):
            stream.write(data[start : start + 1_000_000])
        stream.close()

    def read(self, path: str) -> bytes:
        """Read a file as the superuser."""
        stream = self.fs.open(self.path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def java_array(self, size: int) -> Any:
        """Return an array of bytes into which Java reads."""
        java = self.jvm.java.java.lang
        return java.reflect.Array.newInstance(java.Byte.TYPE, size)


@contextmanager
def hadoop_clients(folder: Path) -> Iterator[HadoopClients]:
    """Serve an empty namespace, and start a JVM with its clients; both end with the block."""
    before = os.environ.get("HADOOP_USER_NAME")
    with serve_namespace(folder, superuser=SUPERUSER, users=USERS, trash="1d") as served:
        os.environ["HADOOP_USER_NAME"] = SUPERUSER  # of the JVM
        try:
            with Jvm() as jvm:
                yield HadoopClients(jvm, served)
        finally:
            if before is None:
                del os.environ["HADOOP_USER_NAME"]
            else:
                os.environ["HADOOP_USER_NAME"] = before


@contextmanager
def raises(java_class: str, words: str = "") -> Iterator[None]:
    """Check that the block raises an exception of Java.

    Args:
        java_class: its name, without the package.
        words: some of its message.
    """
    with pytest.raises(Py4JJavaError) as caught:
        yield
    found = java_class_of(caught.value)
    message = str(caught.value.java_exception.getMessage())
    assert found.rpartition(".")[2].rpartition("$")[2] == java_class, f"{found}: {message}"
    assert words in message
