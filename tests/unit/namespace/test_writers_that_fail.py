"""Writers that are discarded, or whose steps fail: no byte is lost or written twice, and no lease stays behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.errors import InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.namespace.errors import (
    BeingWrittenError,
    FeatureUnsupportedError,
    LeaseLostError,
    PathExistsError,
    PermissionDeniedError,
)
from holdfast.namespace.namespace import Namespace
from holdfast.stores.base import iter_objects
from holdfast.transactions.base import Commit, Outcome
from tests.namespace_world import World
from tests.unit.namespace.fresh import fresh_namespace

SMALL, LARGE = b"12345", b"6789abcdef" * 10


@pytest.fixture
def namespace() -> Namespace:
    namespace = fresh_namespace(inline_bytes=20)
    namespace.write_file("/a", b"old ")
    return namespace


def _blobs(namespace: Namespace) -> int:
    return sum(1 for _ in iter_objects(namespace.blobs.store, namespace.blobs.key("")))


def _fail_once(namespace: Namespace, monkeypatch: pytest.MonkeyPatch, error: Exception, *, after: bool) -> None:
    """Let the next commit raise an error, without or with its effect."""
    commit: Callable[[Commit], Outcome] = namespace.database.commit

    def failing(one: Commit) -> Outcome:
        monkeypatch.setattr(namespace.database, "commit", commit)
        if after:
            commit(one)
        raise error

    monkeypatch.setattr(namespace.database, "commit", failing)


@pytest.mark.parametrize("data", [b"", SMALL, LARGE])
def test_a_discarded_append_leaves_the_file_to_others(namespace: Namespace, data: bytes) -> None:
    file = namespace.append("/a")
    file.write(data)
    with pytest.raises(BeingWrittenError):
        namespace.append("/a")
    file.discard()
    assert namespace.open("/a").read() == b"old " and _blobs(namespace) == 0
    assert not namespace.status("/a").is_open
    with namespace.append("/a") as other:
        other.write(b"new")
    assert namespace.open("/a").read() == b"old new"


def test_a_discard_takes_no_lease_from_another_writer(namespace: Namespace) -> None:
    file = namespace.append("/a")
    assert namespace.recover_lease("/a")
    other = namespace.append("/a")
    other.write(b"kept")
    file.discard()
    other.close()
    assert namespace.open("/a").read() == b"old kept"


def test_an_append_that_cannot_be_closed_gives_the_lease_back(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = namespace.append("/a")
    file.write(SMALL)
    _fail_once(namespace, monkeypatch, UnavailableError("nothing happened"), after=False)
    with pytest.raises(UnavailableError), file:
        pass
    assert file.close() is None
    namespace.append("/a").close()
    assert namespace.open("/a").read() == b"old "


@pytest.mark.parametrize("data", [SMALL, LARGE])
@pytest.mark.parametrize("after", [False, True])
def test_a_sync_that_failed_is_repeated_without_loss_or_doubling(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch, data: bytes, after: bool
) -> None:
    file = namespace.append("/a")
    file.write(data)
    error = OutcomeUnknownError("who knows") if after else UnavailableError("nothing happened")
    _fail_once(namespace, monkeypatch, error, after=after)
    with pytest.raises(type(error)):
        file.sync()
    file.write(b"more")
    file.sync()
    assert namespace.open("/a").read() == b"old " + data + b"more"
    file.close()
    assert namespace.open("/a").read() == b"old " + data + b"more"


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_a_refused_sync_loses_nothing(namespace: Namespace, data: bytes) -> None:
    file = namespace.create("/b")
    file.write(data)
    with pytest.raises(FeatureUnsupportedError, match="create_with_lease"):
        file.sync()
    file.close()
    assert namespace.open("/b").read() == data


def test_a_close_of_unknown_outcome_keeps_the_blob(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    file = namespace.create("/b")
    file.write(LARGE)
    _fail_once(namespace, monkeypatch, OutcomeUnknownError("who knows"), after=True)
    with pytest.raises(OutcomeUnknownError):
        file.close()
    file.discard()
    assert namespace.open("/b").read() == LARGE


def test_a_discarded_file_leaves_nothing(namespace: Namespace) -> None:
    file = namespace.create("/b")
    file.write(LARGE)
    file.discard()
    assert _blobs(namespace) == 0 and not namespace.exists("/b")
    for call in (lambda: file.write(b"1"), file.sync):
        with pytest.raises(InvalidRequestError, match="the file is closed"):
            call()


def test_the_first_to_close_wins(namespace: Namespace) -> None:
    first, second = namespace.create("/b"), namespace.create("/b")
    for file in (first, second):
        file.write(LARGE)
    first.close()
    with pytest.raises(PathExistsError):
        second.close()


def test_the_position_of_an_append_begins_at_the_end(namespace: Namespace) -> None:
    file = namespace.append("/a")
    assert file.position == 4
    file.write(SMALL)
    assert file.position == 9
    file.discard()
    assert namespace.create("/b").position == 0


def test_a_writer_whose_lease_was_taken_publishes_nothing(namespace: Namespace) -> None:
    file = namespace.append("/a")
    file.write(SMALL)
    namespace.recover_lease("/a")
    with pytest.raises(LeaseLostError):
        file.close()
    assert namespace.open("/a").read() == b"old "


@pytest.mark.parametrize(("written", "mode"), [("/d/target", 0o644), ("/d/source", 0o666)])
def test_who_has_no_right_to_a_file_does_not_learn_that_it_is_written(written: str, mode: int) -> None:
    world = World()
    owner = world.client()
    owner.mkdirs("/d")
    for path in ("/d/target", "/d/source"):
        owner.write_file(path, LARGE)
    owner.set_permission("/d/target", mode)
    owner.append(written)
    with pytest.raises(PermissionDeniedError):
        world.client("stranger").concat("/d/target", ["/d/source"])
