"""The times of directories are written late, and never at the expense of the operation that notes them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from holdfast.errors import UnavailableError
from holdfast.namespace.namespace import Namespace
from holdfast.runtime import Environment
from holdfast.runtime.simulated import StillClock
from holdfast.transactions.base import Commit, Outcome
from tests.unit.namespace.fresh import fresh_namespace


@pytest.fixture
def clock() -> StillClock:
    return StillClock(1_800_000_000.0)


@pytest.fixture
def namespace(clock: StillClock) -> Namespace:
    namespace = fresh_namespace(environment=Environment(clock=clock))
    namespace.mkdirs("/dir")
    namespace.flush()
    return namespace


def _fail(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let every later write of times fail; return the list of their sizes."""
    sizes: list[int] = []
    commit_group = namespace.database.commit_group

    def failing(commits: Sequence[Commit]) -> list[Outcome]:
        if not all(key[0] == ord("t") for commit in commits for key in commit.adds) or not commits[0].adds:
            return commit_group(commits)
        sizes.append(len(commits))
        raise UnavailableError("nothing happened")

    monkeypatch.setattr(namespace.database, "commit_group", failing)
    return sizes


def test_an_operation_that_took_effect_does_not_fail_because_of_a_time(
    namespace: Namespace, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        sizes = _fail(namespace, patch)
        clock.at_s += 5
        namespace.write_file("/dir/a", b"1")
        assert sizes, "the times were due"
    assert namespace.open("/dir/a").read() == b"1"
    assert namespace.status("/dir").mtime_ms == int(clock.at_s * 1000)
    namespace.flush()
    again = Namespace(namespace.database, namespace.blobs, namespace.configuration, Environment(), user="root")
    assert again.status("/dir").mtime_ms == int(clock.at_s * 1000), "the note was kept and written later"


def test_a_flush_reports_its_error_and_keeps_the_notes(
    namespace: Namespace, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.at_s += 0.5
    namespace.write_file("/dir/a", b"1")
    with monkeypatch.context() as patch:
        _fail(namespace, patch)
        with pytest.raises(UnavailableError):
            namespace.flush()
    assert namespace.status("/dir").mtime_ms == int(clock.at_s * 1000)


def test_a_fork_does_not_inherit_the_notes_or_a_held_lock(namespace: Namespace, clock: StillClock) -> None:
    clock.at_s += 0.5
    namespace.write_file("/dir/a", b"1")
    times = namespace._times
    with times._lock:  # as another thread may hold it at the moment of the fork
        child = os.fork()
        if not child:
            times.flush()
            os._exit(times._pending != {})
    assert os.waitpid(child, 0)[1] == 0
    assert times._pending != {}
