"""moto looks for an object and then stores one: as it is, two conditional requests that meet may both succeed."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from moto.s3.models import S3Backend

from holdfast.errors import NotFoundError, PreconditionError
from holdfast.stores.base import Create
from holdfast.stores.s3.store import S3Store
from tests.patience import PATIENCE_S
from tests.servers.moto import MotoServer

CLIENTS = 4


def test_one_of_several_creates_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    look, others = S3Backend.get_object, threading.Barrier(CLIENTS)

    def look_together(*args: Any, **kwargs: Any) -> Any:
        found = look(*args, **kwargs)
        with contextlib.suppress(threading.BrokenBarrierError):
            others.wait(0.5)  # none comes if they wait for their turns
        return found

    with MotoServer() as server:
        server.create_bucket("bucket")
        monkeypatch.setattr(S3Backend, "get_object", look_together)
        store = S3Store("bucket", server.options)

        def create(number: int) -> bool:
            try:
                store.put("key", b"%d" % number, Create())
            except PreconditionError:
                return False
            return True

        with ThreadPoolExecutor(CLIENTS) as pool:
            assert sum(pool.map(create, range(CLIENTS))) == 1
        store.close()


def half_a_put(server: MotoServer, key: str) -> http.client.HTTPConnection:
    """Send the first five of ten bytes of an object."""
    connection = http.client.HTTPConnection(server.endpoint_url.removeprefix("http://"), timeout=PATIENCE_S)
    connection.putrequest("PUT", f"/bucket/{key}")
    connection.putheader("Content-Length", "10")
    connection.endheaders(b"half ")
    return connection


def test_half_a_body_is_no_object() -> None:
    with MotoServer() as server:
        server.create_bucket("bucket")
        cut = half_a_put(server, "cut")
        assert cut.sock is not None
        cut.sock.shutdown(socket.SHUT_WR)
        assert cut.getresponse().status == 400
        store = S3Store("bucket", server.options)
        with pytest.raises(NotFoundError):
            store.head("cut")
        cut.close()
        store.close()


def test_a_client_that_stops_in_the_middle_of_a_body_holds_nobody_up() -> None:
    with MotoServer() as server:
        server.create_bucket("bucket")
        slow = half_a_put(server, "slow")
        store = S3Store("bucket", server.options)
        store.put("key", b"value")
        slow.send(b"more.")
        assert slow.getresponse().status == 200
        assert store.get("slow") == b"half more."
        slow.close()
        store.close()
