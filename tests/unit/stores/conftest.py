"""Stores that talk to servers with prepared answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from holdfast.runtime import Clock
from holdfast.stores.s3.store import S3Store
from tests.clocks import StillClock
from tests.unit.stores.s3.scripted_server import Answer, ScriptedServer
from tests.unit.stores.s3.scripted_store import Script, scripted_options


@pytest.fixture
def script() -> Iterator[Script]:
    """Make a store and the server with prepared answers that it talks to."""
    with contextlib.ExitStack() as stack:

        def start(*answers: Answer, clock: Clock | None = None) -> tuple[S3Store, ScriptedServer]:
            server = stack.enter_context(ScriptedServer(*answers))
            store = S3Store("bucket", scripted_options(server.url), clock or StillClock())
            stack.callback(store.close)
            return store, server

        yield start
