"""Start a server of a namespace in memory, in this process, for tests of its page."""

from __future__ import annotations

import http.client
import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn

from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.webhdfs import server as webhdfs_server
from holdfast.webhdfs.server import listen, make_config
from holdfast.webhdfs.settings import ServerSettings
from tests.patience import PATIENCE_S, wait_until
from tests.webhdfs_server import Reply

__all__ = ["PageServer", "serve_page"]

_numbers = itertools.count()


@dataclass(frozen=True)
class PageServer:
    """A running server, and the namespace that it serves, as its superuser, root."""

    namespace: Namespace
    port: int

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}/"

    def get(
        self, path: str, parameters: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request, and return the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            query = f"?{urlencode(parameters)}" if parameters else ""
            connection.request("GET", path + query, headers=dict(headers or {}))
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, named, answer.read())
        finally:
            connection.close()

    def ask(self, what: str, user: str = "root", **parameters: str) -> Any:
        """Return what the page asks for, as a user sees it."""
        return self.get(f"/page/{what}", {"user.name": user, **parameters}).document


@contextmanager
def serve_page(*, believes_names: bool = True) -> Iterator[PageServer]:
    """Serve a new namespace on a free port, until the block ends."""
    name = f"page{next(_numbers)}"
    url = f"memory://{name}"
    init_namespace(Configuration(name=name, data=f"memory://{name}-data", superuser="root"), url, register=False)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    settings = ServerSettings(url=url, port=port, believes_names=believes_names)
    server = uvicorn.Server(make_config(settings))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    with listener, pytest.MonkeyPatch.context() as patch, open_namespace(url, user="root", groups=[]) as namespace:
        patch.setattr(webhdfs_server, "_DUTIES_S", 0.1)  # nobody waits five seconds for the first leader
        thread.start()
        try:
            wait_until(lambda: server.started, "the server does not start", over=lambda: not thread.is_alive())
            yield PageServer(namespace, port)
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)
    assert not thread.is_alive()
