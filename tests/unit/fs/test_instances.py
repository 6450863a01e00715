"""How filesystems are found, shared, pickled and shown."""

from __future__ import annotations

import gc
import json
import pickle
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import fsspec
import pytest

from holdfast.errors import InvalidRequestError, NotFoundError, UnsupportedError
from holdfast.fs import NamespaceFileSystem
from holdfast.namespace import Configuration, Namespace, init_namespace
from holdfast.transactions.base import Commit
from holdfast.transactions.sqlite.backend import SqliteBackend
from tests.patience import PATIENCE_S
from tests.unit.namespace.fresh import fresh_namespace

SECRETS = {
    "database": "postgresql://me:hidden-password@host/db?schema=s",
    "access_key": "hidden-access-key",
    "secret_key": "hidden-secret-key",
}


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Create the namespace `n`; return the URL of its database."""
    database = f"sqlite:///{tmp_path}/ns.db?synchronous=normal"
    configuration = Configuration(name="n", data=f"{tmp_path}/data", superuser="me", inline_bytes=10)
    init_namespace(configuration, database, register=False)
    return database


@pytest.fixture
def fs(database: str) -> Iterator[NamespaceFileSystem]:
    yield NamespaceFileSystem(database=database, user="me")
    NamespaceFileSystem.clear_instance_cache()


# --- finding ----------------------------------------------------------------------------------------------------------
def test_fsspec_finds_it_by_the_url(database: str) -> None:
    with fsspec.open("holdfast://n/dir/%41", "wb", database=database, user="me") as file:
        file.write(b"1")
    fs, path = fsspec.core.url_to_fs("holdfast://n/dir/%41", database=database, user="me")
    assert type(fs) is NamespaceFileSystem and path == "n/dir/%41" and fs.cat_file(path) == b"1"
    files = fsspec.open_files("holdfast://n/dir/*", database=database, user="me")
    assert [one.path for one in files] == ["n/dir/%41"]
    assert [one.full_name for one in files] == ["holdfast://n/dir/%41"]
    with fsspec.open("simplecache::holdfast://n/dir/%41", holdfast={"database": database, "user": "me"}) as file:
        assert file.read() == b"1"


def test_the_database_comes_from_the_catalog_or_the_environment(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "namespaces.json"))
    fs = NamespaceFileSystem(user="me", skip_instance_cache=True)
    assert fs.ls("") == []
    with pytest.raises(NotFoundError, match="no such namespace"):
        fs.ls("n")
    (tmp_path / "namespaces.json").write_text(json.dumps({"n": database}), "utf-8")
    assert fs.ls("n") == [] and fs.ls("", detail=False) == ["n"]
    fs.touch("n/a")
    monkeypatch.setenv("HOLDFAST_NAMESPACE_N", "memory://other-n")
    init_namespace(Configuration(name="n", data="memory://n", superuser="me"), "memory://other-n", register=False)
    assert NamespaceFileSystem(user="me", skip_instance_cache=True).ls("n") == [], "the environment goes first"


def test_a_path_without_a_namespace_saves_what_else_is_in_the_list(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "namespaces.json"))
    monkeypatch.setenv("HOLDFAST_NAMESPACE_N", database)
    monkeypatch.setenv("HOLDFAST_NAMESPACE_A", "memory://refused-root")
    init_namespace(Configuration(name="a", data="memory://a", superuser="me"), "memory://refused-root", register=False)
    fs = NamespaceFileSystem(user="me", skip_instance_cache=True)
    fs.touch("a/file")
    fs.touch("n/file")
    with pytest.raises(InvalidRequestError, match="write holdfast://name/path"):
        fs.rm(["a/file", "n", ""], recursive=True)
    assert fs.exists("a/file") and fs.exists("n/file"), "nothing was deleted"
    fs.rm(["a/file", "n"], recursive=True)
    assert fs.find("") == []


def test_the_name_must_be_that_of_the_database(fs: NamespaceFileSystem) -> None:
    assert fs.ls("", detail=False) == ["n"]
    for path in ("other", "other/a"):
        with pytest.raises(InvalidRequestError, match="another name"):
            fs.exists(path)


def test_the_caller_counts(database: str, fs: NamespaceFileSystem) -> None:
    fs.pipe_file("n/a", b"1", permission=0o640)
    fs.set_owner("n/a", group="staff")
    with pytest.raises(PermissionError):
        NamespaceFileSystem(database=database, user="eve", groups=[]).cat_file("n/a")
    for groups in ("other, staff", ["staff"], ("staff",)):
        assert NamespaceFileSystem(database=database, user="eve", groups=groups).cat_file("n/a") == b"1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"databse": "memory://a"}, "did you mean database"),
        ({"acces_key": "hidden"}, "did you mean access_key"),
        ({"database": "ns.db"}, "sqlite:///directory/file.db"),
        ({"database": ""}, "sqlite:///directory/file.db"),
        ({"user": ""}, "the user is empty"),
    ],
)
def test_bad_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        NamespaceFileSystem(**options)
    assert "hidden" not in str(caught.value)


# --- sharing ----------------------------------------------------------------------------------------------------------
def _in_a_thread(database: str) -> NamespaceFileSystem:
    made: list[NamespaceFileSystem] = []
    thread = threading.Thread(target=lambda: made.append(NamespaceFileSystem(database=database, user="me")))
    thread.start()
    thread.join()
    return made[0]


def test_filesystems_with_the_same_options_share_a_namespace(database: str, fs: NamespaceFileSystem) -> None:
    assert NamespaceFileSystem(database=database, user="me") is fs
    other = _in_a_thread(database)
    assert other is not fs, "fsspec makes one for each thread"
    assert other.namespace("n/a")[0] is fs.namespace("n/a")[0]
    assert NamespaceFileSystem(database=database, user="eve").namespace("n")[0] is not fs.namespace("n")[0]


def test_the_last_filesystem_closes_the_namespace(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Namespace] = []
    close = Namespace.close

    def noted(namespace: Namespace) -> None:
        closed.append(namespace)
        close(namespace)

    monkeypatch.setattr(Namespace, "close", noted)
    fs, other = NamespaceFileSystem(database=database, user="me"), _in_a_thread(database)
    namespace = fs.namespace("n")[0]
    other.pipe_file("n/a", b"1")
    NamespaceFileSystem.clear_instance_cache()
    del fs
    gc.collect()
    assert closed == [] and other.cat_file("n/a") == b"1"
    del other
    gc.collect()
    assert closed == [namespace]
    assert NamespaceFileSystem(database=database, user="me").cat_file("n/a") == b"1", "it is opened again"
    NamespaceFileSystem.clear_instance_cache()


def test_an_open_namespace_is_used_and_not_closed() -> None:
    namespace = fresh_namespace()
    name = namespace.configuration.name
    fs = NamespaceFileSystem.over(namespace)
    fs.pipe_file(f"{name}/a", b"1")
    assert repr(fs) == f"NamespaceFileSystem(over='{name}')" and fs != NamespaceFileSystem.over(namespace)
    with pytest.raises(UnsupportedError, match="cannot be pickled"):
        pickle.dumps(fs)
    del fs
    gc.collect()
    assert namespace.open("/a").read() == b"1"


def test_threads(fs: NamespaceFileSystem) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(10):
                path = f"n/{number}/{turn}"
                fs.pipe_file(path, f"{number} {turn}".encode() * turn)
                assert fs.cat_file(path) == f"{number} {turn}".encode() * turn
                fs.mv(path, f"n/moved {number} {turn}")
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and len(fs.glob("n/moved*")) == 80


_FORK = """
import os, sys
import fsspec
from holdfast.fs import NamespaceFileSystem
fs = NamespaceFileSystem(database=sys.argv[1], user="me")
fs.pipe({"n/before": b"parent", "n/removed": b"parent"})
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        fs.pipe_file(f"n/inherited{number}", b"child" * 10)
        other = NamespaceFileSystem(database=sys.argv[1], user="me")
        assert other is not fs and other.namespace("n")[0] is not fs.namespace("n")[0]
        with other.transaction:
            other.pipe_file(f"n/own{number}", fs.cat_file("n/before"))
        fs.rm_file("n/removed") if number == 2 else None
        sys.exit(0)
    children.append(child)
    fs.pipe_file(f"n/parent{number}", b"parent" * 10)
assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
fs.pipe_file("n/after", b"parent")
"""


def test_a_fork(fs: NamespaceFileSystem, database: str) -> None:
    subprocess.run([sys.executable, "-c", _FORK, database], check=True, timeout=PATIENCE_S)
    names = [f"n/{word}{number}" for word in ("inherited", "own", "parent") for number in range(3)]
    assert fs.find("n") == sorted([*names, "n/before", "n/after"])
    assert fs.cat_file("n/inherited1") == b"child" * 10 and fs.cat_file("n/own1") == b"parent"


_DROP = """
import gc, os, sys, weakref
from holdfast.fs import NamespaceFileSystem
fs = NamespaceFileSystem(database=sys.argv[1], user="me")
namespace = weakref.ref(fs.namespace("n")[0])
child = os.fork()
NamespaceFileSystem.clear_instance_cache()
del fs
gc.collect()
if child == 0:
    os._exit(3 if namespace() is None else 0)
assert namespace() is None
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_does_not_free_the_namespace_of_its_parent(database: str) -> None:
    """fsspec drops its filesystems in a child. Freeing TLS contexts takes a lock, which may stay locked there."""
    subprocess.run([sys.executable, "-c", _DROP, database], check=True, timeout=PATIENCE_S)


_EXIT = """
import sys
from holdfast.fs import NamespaceFileSystem
fs = NamespaceFileSystem(database=sys.argv[1], user="me")
fs.mkdir("n/dir")
fs.namespace("n")[0].flush()
fs.namespace("n")[0].set_times("/dir", mtime_ms=1000)
fs.touch("n/dir/a")
"""


def test_the_end_of_the_process_writes_what_is_in_memory(fs: NamespaceFileSystem, database: str) -> None:
    subprocess.run([sys.executable, "-c", _EXIT, database], check=True, timeout=PATIENCE_S)
    assert fs.info("n/dir")["mtime"] > 1000, "the time at which a file was added"


_EXIT_WITHOUT_THE_DATABASE = """
import gc, os, sys
from holdfast.fs import NamespaceFileSystem
fs = NamespaceFileSystem(database=sys.argv[1], user="me")
fs.mkdir("n/dir")
fs.namespace("n")[0].flush()
fs.touch("n/dir/a")
os.rename(sys.argv[2], sys.argv[2] + ".moved")
if sys.argv[3] == "dropped":
    NamespaceFileSystem.clear_instance_cache()
    del fs
    gc.collect()
"""


@pytest.mark.parametrize("end", ["exit", "dropped"])
def test_a_database_that_is_gone_at_the_end_is_told_in_one_line(database: str, tmp_path: Path, end: str) -> None:
    command = [sys.executable, "-c", _EXIT_WITHOUT_THE_DATABASE, database, str(tmp_path / "ns.db"), end]
    ended = subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True, text=True)
    (line,) = ended.stderr.splitlines()
    assert line.startswith("the last modification times of some directories of n may not be saved: the database file")


def test_a_file_that_is_collected_in_the_middle_of_a_commit_is_given_up_later(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To give its lease back takes a commit, for which the thread would wait behind its own one."""
    fs = NamespaceFileSystem(database=database, user="me", skip_instance_cache=True)
    file = fs.open("n/a", "ab")
    file.write(b"half")
    holder: dict[str, object] = {"file": file}
    holder["itself"] = holder
    del file, holder
    collected: list[int] = []
    commit_group = SqliteBackend.commit_group

    def collect_first(store: SqliteBackend, commits: Sequence[Commit]) -> object:
        collected.append(gc.collect())
        return commit_group(store, commits)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteBackend, "commit_group", collect_first)
        thread = threading.Thread(target=fs.mkdir, args=("n/dir",), daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
    assert not thread.is_alive() and fs.isdir("n/dir") and max(collected) > 0
    assert fs.info("n/a")["is_open"]
    fs.open("n/b", "wb").close()
    assert not fs.info("n/a")["is_open"] and fs.cat_file("n/a") == b""


# --- pickling and showing ---------------------------------------------------------------------------------------------
def test_a_pickled_filesystem_keeps_its_options(fs: NamespaceFileSystem) -> None:
    fs.pipe_file("n/a", b"1")
    data = pickle.dumps(fs)
    assert pickle.loads(data) is fs
    NamespaceFileSystem.clear_instance_cache()
    again = pickle.loads(data)
    assert again is not fs and again == fs and again.cat_file("n/a") == b"1"
    secret = pickle.loads(pickle.dumps(NamespaceFileSystem(**SECRETS)))
    assert secret.storage_options == SECRETS, "for the workers of Dask and Spark"


def test_secrets_are_not_shown() -> None:
    fs = NamespaceFileSystem(**SECRETS, user="me", groups="a, b", region="r1")
    for shown in (repr(fs), str(fs), fs.to_json(), str(fs.to_dict()), f"{fs._options}", f"{fs._options.address('n')}"):
        assert "hidden" not in shown and "me" in shown
    assert repr(fs) == (
        "NamespaceFileSystem(database='postgresql://host/db?schema=s', user='me', groups=('a', 'b'), region='r1')"
    )


@pytest.mark.parametrize("url", ["postgresql://u:hid/den@h/d", "postgresql://u:hid#den@h/d", "mysql://u:hid?den@h/d"])
def test_a_password_in_the_wrong_place_is_not_shown(url: str) -> None:
    fs = NamespaceFileSystem(database=url)
    assert "den" not in repr(fs) + fs.to_json() and "hid" not in repr(fs) + fs.to_json()


def test_json_without_secrets_is_enough_to_make_it_again(fs: NamespaceFileSystem, database: str) -> None:
    assert fs.to_dict() == {
        "cls": "holdfast.fs.namespace:NamespaceFileSystem",
        "protocol": "holdfast",
        "args": (),
        "database": database,
        "user": "me",
    }
    assert NamespaceFileSystem.from_json(fs.to_json()) is fs
    assert "database" not in NamespaceFileSystem(database="postgresql://h/d?password=x").to_dict()


def test_a_namespace_whose_database_was_replaced_can_be_opened_again(
    database: str, fs: NamespaceFileSystem, tmp_path: Path
) -> None:
    file = tmp_path / "ns.db"
    copy = tmp_path / "copy.db"
    fs.pipe_file("n/kept", b"1")
    sqlite3.connect(file).execute("VACUUM INTO ?", [str(copy)])
    fs.pipe_file("n/lost", b"2")
    fs.invalidate_cache()
    held = fs._held["n"]
    assert fs.ls("n", detail=False) == ["n/kept", "n/lost"] and fs._held["n"] is held, "it is in use"
    for one in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        one.unlink(missing_ok=True)
    copy.rename(file)
    with pytest.raises(NotFoundError, match="open it again"):
        NamespaceFileSystem(database=database, user="me").ls("n")
    fs.invalidate_cache()
    assert fs.ls("n", detail=False) == ["n/kept"]
    other = NamespaceFileSystem(database=database, user="me", skip_instance_cache=True)
    assert other.ls("n", detail=False) == ["n/kept"] and other._held["n"] is fs._held["n"] is not held
