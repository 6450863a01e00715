"""Run a server of a namespace that dies at one operation: ``python -m tests.integration.dying_server SETTINGS``.

The process ends by `os._exit` the first time that it carries out the operation: before the operation takes effect, or
after it, before the client gets an answer.
"""

from __future__ import annotations

import json
import os
import sys

from holdfast.namespace.file_writer import FileWriter
from holdfast.webhdfs.calls import Answer
from holdfast.webhdfs.carrying import Carrier
from holdfast.webhdfs.exchange import Exchange
from holdfast.webhdfs.server import serve
from holdfast.webhdfs.settings import ServerSettings

__all__ = ["main"]


def _die_at(operation: str, moment: str) -> None:
    carry_out, finish_upload = Carrier.carry_out, Carrier.finish_upload

    def die(exchange: Exchange, at: str) -> None:
        if exchange.operation == operation and moment == at:
            os._exit(9)

    def carry_out_or_die(self: Carrier, exchange: Exchange) -> Answer:
        die(exchange, "before")
        answer = carry_out(self, exchange)
        die(exchange, "after")
        return answer

    def finish_upload_or_die(self: Carrier, exchange: Exchange, writer: FileWriter, data: bytes) -> None:
        die(exchange, "before")
        finish_upload(self, exchange, writer, data)
        die(exchange, "after")

    Carrier.carry_out = carry_out_or_die  # type: ignore[method-assign]  # in this process only
    Carrier.finish_upload = finish_upload_or_die  # type: ignore[method-assign]  # in this process only


def main(given: str) -> None:
    """Run a server, given its settings, the operation and the moment as JSON."""
    settings = json.loads(given)
    _die_at(settings.pop("operation"), settings.pop("moment"))
    serve(ServerSettings(**settings), lambda address: print(json.dumps({"address": address}), flush=True))


if __name__ == "__main__":
    main(sys.argv[1])
