"""``with fs.transaction``: files that appear in one step."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import pytest

from holdfast.errors import InvalidRequestError, UnavailableError
from holdfast.fs import NamespaceFileSystem, files
from holdfast.namespace import Configuration, init_namespace
from holdfast.namespace.namespace import Namespace
from holdfast.transactions.base import Commit, Outcome
from tests.unit.namespace.fresh import count_blobs

SMALL, LARGE = b"12345", b"0123456789" * 1000


def test_all_files_appear_in_one_step(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs.pipe_file(f"{root}/old", b"old")
    fs.pipe_file(f"{root}/log", SMALL)
    commits: list[Commit] = []
    commit = namespace.database.commit

    def noted(one: Commit) -> Outcome:
        commits.append(one)
        return commit(one)

    with fs.transaction:
        fs.pipe_file(f"{root}/old", LARGE)
        fs.pipe({f"{root}/day=1/a": SMALL, f"{root}/day=1/b": LARGE})
        fs.touch(f"{root}/day=2/empty")
        fs.cp_file(f"{root}/old", f"{root}/copy")
        with fs.open(f"{root}/text", "w") as text:
            text.write("snow ☃")
        with fs.open(f"{root}/log", "ab") as log:
            log.write(LARGE)
        with fs.open(f"{root}/new log", "ab") as log:
            log.write(SMALL)
        assert fs.find(root) == [f"{root}/log", f"{root}/old"] and fs.cat_file(f"{root}/old") == b"old"
        assert fs.cat_file(f"{root}/log") == SMALL
        monkeypatch.setattr(namespace.database, "commit", noted)
    assert len(commits) == 1
    names = ["copy", "day=1/a", "day=1/b", "day=2/empty", "log", "new log", "old", "text"]
    assert fs.find(root) == [f"{root}/{name}" for name in names]
    assert fs.cat_file(f"{root}/log") == SMALL + LARGE and fs.cat_file(f"{root}/copy") == b"old"
    assert fs.read_text(f"{root}/text") == "snow ☃"
    fs.pipe_file(f"{root}/after", SMALL)
    assert fs.exists(f"{root}/after"), "the transaction is over"


def test_a_block_that_fails_leaves_nothing(fs: NamespaceFileSystem, namespace: Namespace, root: str) -> None:
    fs.pipe_file(f"{root}/log", SMALL)

    def fails() -> None:
        with fs.transaction:
            fs.pipe_file(f"{root}/a", LARGE)
            for path in ("log", "new log"):
                with fs.open(f"{root}/{path}", "ab") as log:
                    log.write(LARGE)
            fs.open(f"{root}/b", "wb").write(LARGE)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert fs.find(root) == [f"{root}/log"] and fs.cat_file(f"{root}/log") == SMALL
    assert count_blobs(namespace) == 0
    with fs.open(f"{root}/log", "ab") as log:
        log.write(b"6")
    assert fs.cat_file(f"{root}/log") == SMALL + b"6", "the lease was given back"


def test_if_one_file_is_impossible_none_appears(fs: NamespaceFileSystem, namespace: Namespace, root: str) -> None:
    def fails() -> None:
        with fs.transaction:
            fs.pipe_file(f"{root}/a", LARGE)
            fs.pipe_file(f"{root}/b", LARGE, mode="create")
            namespace.write_file("/b", b"theirs")

    with pytest.raises(FileExistsError):
        fails()
    assert fs.find(root) == [f"{root}/b"] and fs.cat_file(f"{root}/b") == b"theirs" and count_blobs(namespace) == 0
    fs.pipe_file(f"{root}/a", SMALL)
    assert fs.cat_file(f"{root}/a") == SMALL, "the transaction is over"


def test_an_open_file_is_refused(fs: NamespaceFileSystem, root: str) -> None:
    files = []

    def fails() -> None:
        with fs.transaction:
            fs.pipe_file(f"{root}/a", SMALL)
            files.append(fs.open(f"{root}/b", "wb"))
            files[0].write(SMALL)

    with pytest.raises(InvalidRequestError, match="still open"):
        fails()
    assert fs.ls(root) == [] and files[0].closed


def test_a_file_that_is_written_twice(fs: NamespaceFileSystem, namespace: Namespace, root: str) -> None:
    with fs.transaction:
        fs.pipe_file(f"{root}/a", LARGE)
        fs.pipe_file(f"holdfast://{root}/a", SMALL)
    assert fs.cat_file(f"{root}/a") == SMALL and count_blobs(namespace) == 0

    def fails() -> None:
        with fs.transaction:
            fs.pipe_file(f"{root}/b", LARGE)
            fs.pipe_file(f"{root}/b", SMALL, mode="create")

    with pytest.raises(InvalidRequestError, match="written twice"):
        fails()
    assert fs.find(root) == [f"{root}/a"]


def test_a_file_that_fails_alone_is_left_out(fs: NamespaceFileSystem, root: str) -> None:
    with fs.transaction:
        fs.pipe_file(f"{root}/a", SMALL)

        def fails() -> None:
            with fs.open(f"{root}/b", "wb") as file:
                file.write(LARGE)
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fails()
    assert fs.find(root) == [f"{root}/a"]


def test_a_transaction_without_a_block(fs: NamespaceFileSystem, root: str) -> None:
    fs.start_transaction()
    fs.pipe_file(f"{root}/a", SMALL)
    assert not fs.exists(f"{root}/a")
    fs.end_transaction()
    assert fs.cat_file(f"{root}/a") == SMALL
    with fs.transaction:
        pass
    fs.pipe_file(f"{root}/b", SMALL)
    assert fs.exists(f"{root}/b")


@pytest.mark.parametrize("nested", [lambda fs: fs.transaction.__enter__(), lambda fs: fs.start_transaction()])
def test_transactions_do_not_nest(
    fs: NamespaceFileSystem, root: str, nested: Callable[[NamespaceFileSystem], object]
) -> None:
    def fails() -> None:
        with fs.transaction:
            fs.pipe_file(f"{root}/a", SMALL)
            nested(fs)

    with pytest.raises(InvalidRequestError, match="do not nest"):
        fails()
    assert fs.ls(root) == []
    with fs.transaction:
        fs.pipe_file(f"{root}/a", SMALL)
        with pytest.raises(InvalidRequestError, match="do not nest"):
            nested(fs)
        fs.pipe_file(f"{root}/b", SMALL)
        assert fs.ls(root) == [], "the transaction goes on"
    assert fs.find(root) == [f"{root}/a", f"{root}/b"]


def test_a_transaction_is_used_once(fs: NamespaceFileSystem, root: str) -> None:
    transaction = fs.transaction
    with transaction:
        fs.pipe_file(f"{root}/a", SMALL)
    with pytest.raises(InvalidRequestError, match="has ended"), transaction:
        pass
    fs.pipe_file(f"{root}/b", SMALL)
    assert fs.find(root) == [f"{root}/a", f"{root}/b"]


def test_directories_and_renames_take_effect_at_once(fs: NamespaceFileSystem, root: str) -> None:
    fs.pipe_file(f"{root}/a", SMALL)

    def fails() -> None:
        with fs.transaction:
            fs.mkdir(f"{root}/dir")
            fs.mv(f"{root}/a", f"{root}/dir")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert fs.find(root) == [f"{root}/dir/a"]


def test_many_small_files_do_not_overfill_one_step(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_INLINE_BYTES", 2 * len(SMALL))
    for _ in range(2):
        with fs.transaction:
            for number in range(4):
                fs.pipe_file(f"{root}/{number}", SMALL)
        assert [fs.cat_file(f"{root}/{number}") for number in range(4)] == [SMALL] * 4
    assert sum(not namespace.open(f"/{number}").inode.extents[0].inline for number in range(4)) == 2


def test_threads_share_the_transaction_of_their_filesystem(fs: NamespaceFileSystem, root: str) -> None:
    """pyarrow writes from threads of its own."""
    with fs.transaction:
        threads = [threading.Thread(target=fs.pipe_file, args=(f"{root}/{number}", LARGE)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert fs.ls(root) == []
    assert len(fs.ls(root)) == 8


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_a_file_that_waits_for_its_own_commit(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, data: bytes
) -> None:
    first, second, third = (fs.open(f"{root}/{name}", "wb", autocommit=False) for name in "abc")
    for file in (first, second, third):
        file.write(data)
        file.close()
    assert fs.ls(root) == []
    first.commit()
    second.discard()
    fs.transaction.files.clear()  # where fsspec keeps them
    del third, file
    gc.collect()
    assert fs.find(root) == [f"{root}/a"] and fs.cat_file(f"{root}/a") == data
    assert count_blobs(namespace) == (data is LARGE)
    first.commit()
    first.discard()
    assert fs.cat_file(f"{root}/a") == data


def test_a_step_of_unknown_outcome_keeps_thecount_blobs(
    fs: NamespaceFileSystem, namespace: Namespace, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = namespace.database.commit

    def lost(one: Commit) -> Outcome:
        commit(one)
        raise UnavailableError("the reply was lost")

    def fails() -> None:
        with monkeypatch.context() as patch, fs.transaction:
            fs.pipe({f"{root}/a": LARGE, f"{root}/b": LARGE})
            patch.setattr(namespace.database, "commit", lost)

    with pytest.raises(UnavailableError):
        fails()
    assert fs.cat_file(f"{root}/a") == fs.cat_file(f"{root}/b") == LARGE


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[NamespaceFileSystem]:
    """Return a filesystem that knows the namespaces `one` and `two`."""
    for name in ("one", "two"):
        database = f"memory://transactions-{name}"
        init_namespace(Configuration(name=name, data=database, superuser="me"), database, register=False)
        monkeypatch.setenv(f"HOLDFAST_NAMESPACE_{name.upper()}", database)
    fs = NamespaceFileSystem(user="me", skip_instance_cache=True)
    yield fs
    for name in ("one", "two"):
        fs.rm(fs.glob(f"{name}/*"))


def test_each_namespace_is_one_step(two: NamespaceFileSystem) -> None:
    with two.transaction:
        two.pipe({"one/a": SMALL, "two/a": LARGE, "one/b": SMALL})
        assert two.ls("one") == two.ls("two") == []
    assert two.find("one") == ["one/a", "one/b"] and two.cat_file("two/a") == LARGE
    two.cp_file("two/a", "one/c")
    assert two.cat_file("one/c") == LARGE
    with pytest.raises(NotImplementedError, match="nothing moves between namespaces"):
        two.mv("one/a", "two/b")
