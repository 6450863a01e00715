"""Answer what is not WebHDFS: the page at ``/`` with its data, ``/health`` and ``/metrics``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.namespace.keys import ROOT_KEY
from holdfast.webhdfs import metrics, page_data
from holdfast.webhdfs.calls import Answer, Call
from holdfast.webhdfs.carrying import Carrier
from holdfast.webhdfs.exchange import Exchange
from holdfast.webhdfs.parameters import Parameters
from holdfast.webhdfs.settings import ServerSettings

_FOLDER = Path(__file__).parent / "page"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_JSON = {"content-type": "application/json"}
_PRIVATE = {**_JSON, "cache-control": "no-store", "x-content-type-options": "nosniff"}

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The page runs no script but its own, and talks to nobody else: names of files are written by strangers."""

_DATA: Mapping[bytes, Callable[[Call], Mapping[str, object]]] = {
    b"/page/servers": page_data.describe_servers,
    b"/page/work": page_data.describe_work,
    b"/page/usage": page_data.describe_usage,
}


class Pages:
    """What a server has besides WebHDFS."""

    def __init__(self, carrier: Carrier, settings: ServerSettings) -> None:
        self._carrier = carrier
        self._settings = settings
        self._files = _read_files()

    def find(self, exchange: Exchange) -> Answer | None:
        """Return what is at the address of a request; None if nothing is.

        Raises:
            HoldfastError: the caller may not see it, or it cannot be found out now.
        """
        if exchange.method not in ("GET", "HEAD"):
            return None
        if exchange.raw_path in self._files:
            return self._files[exchange.raw_path]
        if exchange.raw_path in _DATA:
            return self._describe(exchange)
        if exchange.raw_path == b"/health":
            return self._check_health(exchange)
        if exchange.raw_path == b"/metrics":
            body = metrics.render_metrics(self._settings.metrics_directory)
            return Answer(body=body, headers={"content-type": metrics.CONTENT_TYPE})
        return None

    def _describe(self, exchange: Exchange) -> Answer:
        """Answer data of the page as their caller may see them; callers prove who they are as for WebHDFS."""
        exchange.parameters = Parameters.parse(exchange.scope["query_string"])
        call = replace(self._carrier.make_call(exchange), path=exchange.parameters.text("path", "/"))
        return Answer(document=_DATA[exchange.raw_path](call), headers=_PRIVATE)

    def _check_health(self, exchange: Exchange) -> Answer:
        """Answer 200 if this process can work, and 503 if it stops or cannot reach the database."""
        problem = "the server stops" if exchange.connection.is_draining else ""
        try:
            if ROOT_KEY not in self._carrier.namespace.database.get_many([ROOT_KEY]):
                problem = "the database has no root directory"
        except HoldfastError as error:
            problem = str(error)
        body = {"status": "failing", "problem": problem} if problem else {"status": "ok"}
        return Answer(status=503 if problem else 200, body=json.dumps(body).encode() + b"\n", headers=_JSON)


def _read_files() -> dict[bytes, Answer]:
    """Return the files of the page by their addresses."""
    found = {f"/page/{path.name}".encode(): _make_answer(path) for path in _FOLDER.iterdir() if path.suffix in _KINDS}
    found[b"/"] = found[b"/index.html"] = found.pop(b"/page/index.html")
    return found


def _make_answer(path: Path) -> Answer:
    headers = {
        "content-type": f"{_KINDS[path.suffix]}; charset=utf-8",
        "cache-control": "no-cache",
        "content-security-policy": _POLICY,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    return Answer(body=path.read_bytes(), headers=headers)
