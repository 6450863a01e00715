"""Several files appear in one step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from holdfast.errors import InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.namespace import file_writer, phases
from holdfast.namespace.errors import (
    BeingWrittenError,
    LeaseLostError,
    ParentNotDirectoryError,
    PathExistsError,
    PathIsDirectoryError,
    QuotaExceededError,
)
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.namespace import Namespace
from holdfast.stores.base import iter_objects
from holdfast.transactions.base import Commit, Outcome, Record
from tests.unit.namespace.fresh import fresh_namespace

LARGE = b"0123456789" * 100


@pytest.fixture
def namespace() -> Namespace:
    return fresh_namespace(inline_bytes=100)


def _prepared(namespace: Namespace, path: str, data: bytes, *, overwrite: bool = False) -> FileWriter:
    file = namespace.create(path, overwrite=overwrite)
    file.write(data)
    file.prepare()
    return file


def _paths(namespace: Namespace) -> list[str]:
    return sorted(entry.path for entry in namespace.walk("/"))


def _blobs(namespace: Namespace) -> int:
    return sum(1 for _ in iter_objects(namespace.blobs.store, namespace.blobs.key("")))


def _note_commits(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> list[Commit]:
    commits: list[Commit] = []
    commit = namespace.database.commit

    def noted(one: Commit) -> Outcome:
        commits.append(one)
        return commit(one)

    monkeypatch.setattr(namespace.database, "commit", noted)
    return commits


def test_new_files_in_new_directories_take_one_transaction(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace.mkdirs("/there")
    wanted = {"/there/a": b"1", "/new/b": b"2", "/new/deep/c": LARGE, "/new/deep/d": b"", "/new/e": b"3"}
    files = [_prepared(namespace, path, data) for path, data in wanted.items()]
    assert _paths(namespace) == ["/there"], "nothing is visible"
    commits = _note_commits(namespace, monkeypatch)
    namespace.publish_many(files)
    assert len(commits) == 1
    assert {path: namespace.open(path).read() for path in wanted} == wanted
    assert _paths(namespace) == sorted([*wanted, "/there", "/new", "/new/deep"])
    namespace.publish_many([])
    assert len(commits) == 1
    for file in files:
        file.discard()
        assert file.close() is None
    assert {path: namespace.open(path).read() for path in wanted} == wanted


def test_replaced_and_appended_files_appear_together(namespace: Namespace) -> None:
    namespace.write_file("/a", b"old")
    namespace.write_file("/log", LARGE)
    old = namespace.open("/a").inode.id
    log = namespace.append("/log")
    log.write(b"more")
    log.prepare()
    files = [_prepared(namespace, "/a", LARGE, overwrite=True), log, _prepared(namespace, "/b", b"new")]
    assert namespace.open("/a").read() == b"old" and namespace.open("/log").read() == LARGE
    namespace.publish_many(files)
    assert namespace.open("/a").read() == LARGE and namespace.open("/a").inode.id != old
    assert namespace.open("/log").read() == LARGE + b"more" and not namespace.status("/log").is_open


@pytest.mark.parametrize(
    ("made_meanwhile", "error"),
    [
        (lambda namespace: namespace.write_file("/dir/b", b"theirs"), PathExistsError),
        (lambda namespace: namespace.mkdirs("/dir/b"), PathIsDirectoryError),
        (lambda namespace: namespace.write_file("/dir", b"theirs"), ParentNotDirectoryError),
        (lambda namespace: namespace.create_with_lease("/dir/b"), BeingWrittenError),
    ],
)
def test_if_one_file_is_impossible_none_appears(
    namespace: Namespace, made_meanwhile: Callable[[Namespace], object], error: type[Exception]
) -> None:
    files = [_prepared(namespace, path, LARGE) for path in ("/a", "/dir/b", "/dir/c")]
    made_meanwhile(namespace)
    before = _paths(namespace)
    with pytest.raises(error):
        namespace.publish_many(files)
    assert _paths(namespace) == before
    for file in files:
        file.discard()
    assert _blobs(namespace) == 0


def test_a_lost_lease_lets_no_file_appear(namespace: Namespace) -> None:
    namespace.write_file("/log", b"1")
    log = namespace.append("/log")
    log.write(b"2")
    log.prepare()
    namespace.recover_lease("/log")
    with pytest.raises(LeaseLostError):
        namespace.publish_many([_prepared(namespace, "/a", b"1"), log])
    assert _paths(namespace) == ["/log"] and namespace.open("/log").read() == b"1"


def test_a_file_below_another_new_file_is_impossible(namespace: Namespace) -> None:
    with pytest.raises(ParentNotDirectoryError):
        namespace.publish_many([_prepared(namespace, "/a", b"1"), _prepared(namespace, "/a/b", b"2")])
    with pytest.raises(PathIsDirectoryError):
        namespace.publish_many([_prepared(namespace, "/a/b", b"1"), _prepared(namespace, "/a", b"2")])
    assert _paths(namespace) == []


def test_quotas_count_the_whole_step(namespace: Namespace) -> None:
    namespace.mkdirs("/dir")
    namespace.write_file("/dir/large", LARGE)
    namespace.set_quota("/dir", names=4, space=1100)
    three = [_prepared(namespace, f"/dir/{name}", b"1") for name in "abc"]
    with pytest.raises(QuotaExceededError, match="names"):
        namespace.publish_many(three)
    namespace.publish_many(three[:2])
    with pytest.raises(QuotaExceededError, match="space"):
        namespace.publish_many([_prepared(namespace, f"/dir/{name}", b"1" * 60, overwrite=True) for name in "ab"])
    # The sum counts: one file grows, another one shrinks by more.
    namespace.publish_many(
        [_prepared(namespace, "/dir/a", LARGE, overwrite=True), _prepared(namespace, "/dir/large", b"", overwrite=True)]
    )
    summary = namespace.content_summary("/dir")
    assert (summary.files, summary.size) == (3, 1001)


def test_bad_requests_are_refused_before_anything_happens(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = [_prepared(namespace, "/a", b"1"), _prepared(namespace, "/a", b"2")]
    with pytest.raises(InvalidRequestError, match="a path occurs twice"):
        namespace.publish_many(twice)
    with pytest.raises(InvalidRequestError, match="call prepare instead of close"):
        namespace.publish_many([namespace.create("/b")])
    monkeypatch.setattr(file_writer, "MOST_FILES", 1)
    with pytest.raises(InvalidRequestError, match="at most 1 files"):
        namespace.publish_many([_prepared(namespace, "/a", b"1"), _prepared(namespace, "/b", b"2")])
    monkeypatch.setattr(file_writer, "MOST_FILES", 10)
    monkeypatch.setattr(file_writer, "MOST_INLINE_BYTES", 9)
    with pytest.raises(InvalidRequestError, match="inline=False"):
        namespace.publish_many([_prepared(namespace, "/a", b"12345"), _prepared(namespace, "/b", b"12345")])
    assert _paths(namespace) == []
    file = namespace.create("/b")
    file.write(b"12345")
    assert file.prepare(inline=False) == 0
    with pytest.raises(InvalidRequestError, match="the file is closed"):
        file.write(b"6")
    namespace.publish_many([_prepared(namespace, "/a", b"12345"), file])
    assert namespace.open("/b").read() == b"12345" and _blobs(namespace) == 1


def test_a_prepared_file_can_be_published_alone(namespace: Namespace) -> None:
    inode = _prepared(namespace, "/a", LARGE).close()
    assert inode is not None and namespace.open("/a").inode == inode


@pytest.mark.parametrize("data", [b"12345", LARGE])
def test_a_prepared_file_can_be_discarded(namespace: Namespace, data: bytes) -> None:
    file = _prepared(namespace, "/a", data)
    file.discard()
    with pytest.raises(InvalidRequestError, match="not prepared"):
        namespace.publish_many([file])
    assert _paths(namespace) == [] and _blobs(namespace) == 0


@pytest.mark.parametrize("error", [UnavailableError, OutcomeUnknownError])
def test_a_discard_after_an_unknown_outcome_keeps_the_blobs(
    namespace: Namespace, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    files = [_prepared(namespace, path, LARGE) for path in ("/a", "/b")]
    commit = namespace.database.commit

    def lost(one: Commit) -> Sequence[Outcome]:
        commit(one)
        raise error("the reply was lost")

    with monkeypatch.context() as patch:
        patch.setattr(namespace.database, "commit", lost)
        with pytest.raises(error):
            namespace.publish_many(files)
    for file in files:
        file.discard()
    assert namespace.open("/a").read() == namespace.open("/b").read() == LARGE


def test_a_directory_that_goes_between_two_parts(namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts before have seen it, and the next ones would make it anew: the whole step starts over."""
    monkeypatch.setattr(phases, "_PIECE", 2)
    namespace.mkdirs("/table/part=1")
    files = [_prepared(namespace, f"/table/part=1/f{number}", b"1") for number in range(6)]
    get_many = namespace.database.get_many
    calls = 0

    def read(keys: Collection[bytes]) -> dict[bytes, Record]:
        nonlocal calls
        calls += 1
        if calls == 3:
            monkeypatch.setattr(namespace.database, "get_many", get_many)
            namespace.delete("/table/part=1", recursive=True)
            monkeypatch.setattr(namespace.database, "get_many", read)
        return get_many(keys)

    monkeypatch.setattr(namespace.database, "get_many", read)
    namespace.publish_many(files)
    assert calls > 3
    assert [path for path in _paths(namespace) if "/f" in path] == [f"/table/part=1/f{number}" for number in range(6)]
    assert namespace.check().totals == {}
