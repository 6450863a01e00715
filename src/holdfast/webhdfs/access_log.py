"""Log requests, a line of JSON each. The query is not logged: it may contain a token."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.webhdfs.exchange import Exchange
from holdfast.webhdfs.settings import open_access_log


class AccessLog:
    """A file of requests, to which several processes append.

    Args:
        place: a path; ``-`` for the standard output; empty for nowhere.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._descriptor = -1
        self._is_own = place not in ("", "-")
        if self._is_own:
            self._descriptor = open_access_log(place)
        elif place:
            self._descriptor = sys.stdout.fileno()

    def write(self, exchange: Exchange) -> None:
        """Write the line of a request."""
        if self._descriptor < 0:
            return
        line: dict[str, Any] = {
            "time": round(exchange.clock.now_s(), 3),
            "client": exchange.client,
            "user": exchange.user,
            "method": exchange.method,
            "operation": exchange.operation,
            "path": exchange.path or exchange.raw_path.decode("ascii", "replace")[:1000],
            "status": exchange.status,
            "milliseconds": round(exchange.age_s() * 1000, 2),
            "received": exchange.received_bytes,
            "sent": exchange.sent_bytes,
        }
        if exchange.real_user:
            line["real_user"] = exchange.real_user
        destination = exchange.parameters.text("destination")
        if destination:
            line["destination"] = destination
        with contextlib.suppress(OSError):  # a full disk must not stop the server
            os.write(self._descriptor, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def follow(self) -> None:
        """Go on in a new file if the file was renamed or removed, as logrotate does."""
        with contextlib.suppress(OSError, InvalidRequestError):  # until then, lines are written to the old file
            if self._is_own and not self._is_in_place():
                opened = open_access_log(self._place)
                os.dup2(opened, self._descriptor, inheritable=False)
                os.close(opened)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._place), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Close the file."""
        if self._is_own and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
