"""The times of directories are written late, and never at the expense of the operation that notes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pytest

from holdfast.errors import UnavailableError
from holdfast.namespace.namespace import Namespace
from holdfast.runtime import Environment
from holdfast.transactions.base import Commit, Outcome
from tests.clocks import StillClock
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


def _again(namespace: Namespace, clock: StillClock) -> Namespace:
    """Open the namespace once more, as another process does."""
    environment = Environment(clock=clock)
    return Namespace(namespace.database, namespace.blobs, namespace.configuration, environment, user="root")


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


def test_notes_that_are_made_during_a_failed_flush_are_kept(
    namespace: Namespace, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.at_s += 0.5
    namespace.write_file("/dir/a", b"1")

    commit_group = namespace.database.commit_group

    def meanwhile(commits: Sequence[Commit]) -> list[Outcome]:
        if not any(key[0] == ord("t") for commit in commits for key in commit.adds):
            return commit_group(commits)
        clock.at_s += 0.25
        namespace.write_file("/dir/b", b"2")
        raise UnavailableError("nothing happened")

    with monkeypatch.context() as patch:
        patch.setattr(namespace.database, "commit_group", meanwhile)
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


@pytest.mark.parametrize("change", [
    lambda namespace: namespace.rename("/dir", "/moved/there"),
    lambda namespace: namespace.rename("/dir", "/new"),
    lambda namespace: namespace.set_permission("/dir", 0o700),
    lambda namespace: namespace.set_quota("/dir", names=100),
    lambda namespace: (namespace.rename("/dir", "/new"), namespace.set_owner("/new", "ann")),
], ids=["rename-below", "rename", "mode", "quota", "both"])  # fmt: skip
def test_a_directory_that_changes_in_other_ways_keeps_its_time(
    namespace: Namespace, clock: StillClock, change: Callable[[Namespace], object]
) -> None:
    namespace.mkdirs("/moved")
    namespace.flush()
    other, number = _again(namespace, clock), namespace.status("/dir").id
    clock.at_s += 0.5
    namespace.write_file("/dir/a", b"1")
    written = int(clock.at_s * 1000)
    clock.at_s += 0.2
    change(namespace)
    namespace.flush()
    (found,) = [entry for entry in other.walk("/") if entry.id == number]
    assert found.mtime_ms == written


def test_a_time_that_is_set_to_what_it_was_is_not_overwritten(namespace: Namespace, clock: StillClock) -> None:
    other = _again(namespace, clock)
    before = other.status("/dir").mtime_ms
    clock.at_s += 0.5
    namespace.write_file("/dir/a", b"1")
    other.set_times("/dir", mtime_ms=before)
    namespace.flush()
    assert other.status("/dir").mtime_ms == before


def test_the_later_of_two_times_is_kept(
    namespace: Namespace, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _again(namespace, clock)
    clock.at_s += 0.1
    other.write_file("/dir/a", b"1")
    clock.at_s += 0.1
    namespace.write_file("/dir/b", b"1")
    commit_group = namespace.database.commit_group

    def overtaken(commits: Sequence[Commit]) -> list[Outcome]:
        if commits[0].adds:
            monkeypatch.undo()
            other.flush()
        return commit_group(commits)

    monkeypatch.setattr(namespace.database, "commit_group", overtaken)
    namespace.flush()
    assert other.status("/dir").mtime_ms == int(clock.at_s * 1000)


def test_a_time_that_is_known_already_is_not_written(
    namespace: Namespace, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _again(namespace, clock)
    clock.at_s += 0.1
    other.write_file("/dir/a", b"1")
    namespace.write_file("/dir/b", b"1")
    other.flush()
    sizes = _fail(namespace, monkeypatch)
    namespace.flush()
    assert not sizes


@pytest.mark.parametrize("look", [lambda namespace: namespace.exists("/x"), lambda namespace: namespace.list_page("/")])
def test_a_client_that_only_looks_writes_its_times(
    namespace: Namespace, clock: StillClock, look: Callable[[Namespace], object]
) -> None:
    other = _again(namespace, clock)
    clock.at_s += 0.5
    namespace.write_file("/dir/a", b"1")
    clock.at_s += 1
    look(namespace)
    assert other.status("/dir").mtime_ms == int((clock.at_s - 1) * 1000)


def test_a_directory_that_was_deleted_gets_no_time(namespace: Namespace, clock: StillClock) -> None:
    other = _again(namespace, clock)
    clock.at_s += 0.5
    namespace.write_file("/dir/a", b"1")
    other.delete("/dir", recursive=True)
    other.mkdirs("/dir")
    other.collect()
    namespace.flush()
    assert other.check().totals == {}
