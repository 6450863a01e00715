"""Answer requests that offer another protocol, such as HTTP/2, as if they did not: Java's newer client always offers.

The parser takes what follows such a head for the other protocol, and reports a body without any bytes: an upload would
be an empty file. So another parser gets the rest, after a head that announces the same body.
"""

from __future__ import annotations

import sys
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_FRAMING = (b"content-length", b"transfer-encoding")


class UpgradeIgnoringProtocol(HttpToolsProtocol):
    """uvicorn's connection, without upgrades."""

    _fed = b""
    _rest = b""
    _is_offered = False

    def data_received(self, data: bytes) -> None:
        self._rest = data
        while self._rest and not self.transport.is_closing():
            self._fed, self._rest = self._rest, b""
            super().data_received(self._fed)
        self._fed = self._rest = b""

    def on_headers_complete(self) -> None:
        self._is_offered = bool(self.parser.should_upgrade())
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._is_offered:  # else the end is not known yet
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Parse the body and what follows; uvicorn calls this when the parser has stopped after the head."""
        stopped = sys.exc_info()[1]
        assert isinstance(stopped, httptools.HttpParserUpgrade)
        self._rest = self._fed[stopped.args[0] :]
        self._is_offered = False
        relay = _Relay(self)
        self.parser = httptools.HttpRequestParser(relay)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        framing = [b"%s: %s\r\n" % pair for pair in self.headers if pair[0] in _FRAMING]
        self.parser.feed_data(b"PUT / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n")
        relay.is_open = True


class _Relay:
    """Hands a connection what a parser finds, but for a first head that the connection knows already."""

    def __init__(self, connection: HttpToolsProtocol) -> None:
        self.is_open = False
        self._connection = connection
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete

    def _tell(self, name: str, *arguments: Any) -> None:
        if self.is_open:
            getattr(self._connection, name)(*arguments)

    def on_message_begin(self) -> None:
        self._tell("on_message_begin")

    def on_url(self, url: bytes) -> None:
        self._tell("on_url", url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._tell("on_header", name, value)

    def on_headers_complete(self) -> None:
        self._tell("on_headers_complete")
