"""Share one server process among the modules here: each test has paths of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.webhdfs_server import ServedNamespace, ServerProcess

__all__ = ["served", "server", "session_server"]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNamespace]:
    """A namespace without permissions, which is checked at the end of the session."""
    with ServedNamespace(tmp_path_factory.mktemp("served"), inline_bytes=100) as namespace:
        yield namespace


@pytest.fixture(scope="session")
def session_server(served: ServedNamespace) -> Iterator[ServerProcess]:
    """A server of that namespace with an access log; it must log no error in the whole session."""
    with served.serve("--access-log", str(served.directory / "access.log")) as running:
        yield running


@pytest.fixture
def server(session_server: ServerProcess) -> Iterator[ServerProcess]:
    """That server; a test after which it has logged an error, or does not answer anymore, fails."""
    yield session_server
    session_server.check_log()
    assert session_server.is_alive()
