"""Answer what is not WebHDFS: ``/health`` and ``/metrics``."""

from __future__ import annotations

import json

from holdfast.errors import HoldfastError
from holdfast.namespace.keys import ROOT_KEY
from holdfast.webhdfs import metrics
from holdfast.webhdfs.calls import Answer
from holdfast.webhdfs.carrying import Carrier
from holdfast.webhdfs.exchange import Exchange
from holdfast.webhdfs.settings import ServerSettings

_JSON = {"content-type": "application/json"}


class Pages:
    """What a server has besides WebHDFS."""

    def __init__(self, carrier: Carrier, settings: ServerSettings) -> None:
        self._carrier = carrier
        self._settings = settings

    def find(self, exchange: Exchange) -> Answer | None:
        """Return what is at the address of a request; None if nothing is."""
        if exchange.method != "GET":
            return None
        if exchange.raw_path == b"/health":
            return self._check_health(exchange)
        if exchange.raw_path == b"/metrics":
            body = metrics.render_metrics(self._settings.metrics_directory)
            return Answer(body=body, headers={"content-type": metrics.CONTENT_TYPE})
        return None

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
