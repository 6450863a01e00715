"""Serve a namespace in memory from a thread of the test, and send requests byte for byte.

Worked composition::

    with serve_fresh() as served:
        answer = served.ask("PUT", "/d", "op=MKDIRS&user.name=root")
        assert answer.status == 200
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import uvicorn

from holdfast.namespace import Namespace
from holdfast.webhdfs import server as webhdfs_server
from holdfast.webhdfs.calls import PREFIX
from holdfast.webhdfs.server import address_of, listen, make_config
from holdfast.webhdfs.settings import ServerSettings
from holdfast.webhdfs.tokens import TokenStore
from tests.patience import PATIENCE_S
from tests.unit.namespace.fresh import fresh_namespace
from tests.webhdfs_server import Reply, relative

__all__ = ["Served", "serve_fresh"]


@dataclass
class Served:
    """A server, and its namespace, opened as its superuser, root."""

    address: str
    namespace: Namespace
    tls: ssl.SSLContext | None = None

    @property
    def tokens(self) -> TokenStore:
        """The tokens of the namespace; each time one that remembers nothing."""
        return TokenStore(self.namespace.database, self.namespace.environment)

    @property
    def port(self) -> int:
        """The port of the server."""
        return int(urlsplit(self.address).port or 0)

    def ask(
        self,
        method: str,
        path: str,
        query: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = {},
    ) -> Reply:
        """Send a request to WebHDFS; path and query are sent as they are."""
        return self.send(method, f"{PREFIX}{path}?{query}", body, headers)

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        """Send any request."""
        host = str(urlsplit(self.address).hostname)
        if self.tls is None:
            connection = http.client.HTTPConnection(host, self.port, timeout=PATIENCE_S)
        else:
            connection = http.client.HTTPSConnection(host, self.port, timeout=PATIENCE_S, context=self.tls)
        try:
            connection.putrequest(method, target, skip_host="host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None or method in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body or b"")))
            connection.endheaders(body)
            found = connection.getresponse()
            return Reply(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path: str, parameters: Mapping[str, str] = {}, headers: Mapping[str, str] = {}) -> Reply:
        """Ask for any path."""
        return self.send("GET", f"{path}?{urlencode(parameters)}", None, headers)

    def ask_page(self, what: str, user: str = "root", **parameters: str) -> Any:
        """Return what the page asks for, as a user sees it."""
        return self.get(f"/page/{what}", {"user.name": user, **parameters}).document

    def transfer(
        self,
        method: str,
        path: str,
        query: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = {},
    ) -> Reply:
        """Send both requests of a transfer of bytes; return the answer to the second one, or to a first one that is
        refused.
        """
        first = self.ask(method, path, query, None, headers)
        if first.status != 307:
            return first
        return self.send(method, relative(first.headers["location"]), body, headers)


@contextmanager
def serve_fresh(
    settings: ServerSettings | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    inline_bytes: int = 1000,
    duties_s: float | None = None,
) -> Iterator[Served]:
    """Serve a new namespace on a free port of loopback.

    Args:
        settings: its address and its namespace are replaced.
        tls: how clients connect; None for plain HTTP.
        duties_s: the interval of background work, in this process; None for that of all servers.
    """
    namespace = fresh_namespace(inline_bytes=inline_bytes)
    given = settings or ServerSettings(url="")
    url = f"memory://{namespace.configuration.name}"
    with listen("127.0.0.1", 0) as listener, pytest.MonkeyPatch.context() as patch:
        if duties_s is not None:
            patch.setattr(webhdfs_server, "_DUTIES_S", duties_s)
        chosen = replace(given, url=url, port=listener.getsockname()[1])
        server = uvicorn.Server(make_config(chosen))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield Served(address_of(replace(chosen, host="127.0.0.1")), namespace, tls)
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)
            namespace.close()
    assert not thread.is_alive()
