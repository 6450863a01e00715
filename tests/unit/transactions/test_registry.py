"""Test how URLs choose a database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from holdfast.errors import AccessDeniedError, InvalidRequestError, NotFoundError, UnavailableError, UnsupportedError
from holdfast.runtime import Environment
from holdfast.transactions import registry
from holdfast.transactions.base import ABSENT, Backend, Commit, Committed, Conflict
from holdfast.transactions.group_commit import GroupCommit
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.registry import has_password, open_backend, public_url
from holdfast.transactions.validation import VersionSource
from tests.children import Child
from tests.database_servers import NewUrl
from tests.databases import needs_mariadb, needs_postgres
from tests.patience import PATIENCE_S


@pytest.mark.parametrize("group_commits", [True, False])
def test_callers_share_commits_or_not(tmp_path: Path, group_commits: bool) -> None:
    backend = open_backend(f"sqlite://{tmp_path}/records.db", create=True, group_commits=group_commits)
    try:
        assert isinstance(backend, GroupCommit) is group_commits
        assert isinstance(backend.commit(Commit(reads={b"a": ABSENT}, puts={b"a": b"1"})), Committed)
        assert backend.get_many([b"a"])[b"a"].value == b"1"
    finally:
        backend.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:secret@host:5432/shop?password=secret&schema=s1", "postgresql://host:5432/shop?schema=s1"),
        ("mysql://user:se@cret@host/shop", "mysql://host/shop"),
        ("postgresql://host/shop?schema=a&schema=b", "postgresql://host/shop"),
        ("postgresql://host/shop?schema=a-b", "postgresql://host/shop"),
        ("sqlite:///data/me@home/shop.db?synchronous=normal", "sqlite:///data/me@home/shop.db"),
        ("sqlite://user:secret@data/shop.db", "sqlite://data/shop.db"),
        ("postgresql://[::1/shop", "(not a url)"),
        ("secret", "(not a url)"),
    ],
)
def test_what_is_shown_of_a_url_has_no_secrets(url: str, shown: str) -> None:
    assert public_url(url) == shown


def test_versions_of_a_source_are_of_one_session() -> None:
    ids = Environment().ids
    one, other = VersionSource(ids), VersionSource(ids)
    first, last = one.take(1), one.take(2**20) + 2**20 - 1
    assert last - first == 2**20
    assert VersionSource.session_of(first) == VersionSource.session_of(last)
    assert VersionSource.session_of(first) != VersionSource.session_of(other.take(1))


@pytest.mark.parametrize("path", ["/shop.db", "/:memory:", r"/C:\shop.db", "//shop-2.db"])
@pytest.mark.parametrize("create", [False, True])
def test_a_relative_path_is_no_file_of_the_root_directory(path: str, create: bool) -> None:
    with pytest.raises(InvalidRequestError, match=r"path of an SQLite file is absolute.*\$PWD/file.db path='/[^/]"):
        open_backend(f"sqlite://{path}", create=create)
    assert not Path(path).exists()


@pytest.mark.parametrize("url", ["postgresql://u@h/d?schema=caf\udce9", "mysql://u@h/caf\udce9"])
def test_a_url_with_a_lone_surrogate_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="must be valid Unicode"):
        open_backend(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mongodb://h/d", "a database needs a URL such as"),
        ("shop.db", "a database needs a URL such as sqlite:///directory/file.db"),
        ("postgresql:user:canary@host/shop", "a database needs a URL such as"),
        ("sqlite:shop.db", "a database needs a URL such as"),
        ("mysql://u:canary@x@h/d", "an @ in the wrong place"),
        ("mysql://u:c?ssl=canary@h/d", "an @ in the wrong place"),
    ],
)
def test_a_wrong_url_is_refused_and_its_password_not_shown(url: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as error:
        open_backend(url)
    assert "canary" not in str(error.value)


@pytest.mark.parametrize("given", ["0", "1001", "-1", "1.5", "%C2%B2"])
def test_a_number_of_connections_has_digits(given: str) -> None:
    with pytest.raises(InvalidRequestError, match="a number from 1 to 1000"):
        open_backend(f"postgresql://u@h/d?connections={given}")


def test_the_file_of_a_database_may_have_a_name_of_any_bytes(tmp_path: Path) -> None:
    open_backend(f"sqlite://{tmp_path}/caf\udce9.db", create=True).close()
    assert (tmp_path / "caf\udce9.db").exists()


def test_four_slashes_name_the_same_file(tmp_path: Path) -> None:
    open_backend(f"sqlite://{tmp_path}/records.db", create=True).close()
    open_backend(f"sqlite:///{tmp_path}/records.db").close()
    with pytest.raises(NotFoundError, match=f"path='{tmp_path}/none.db'"):
        open_backend(f"sqlite:///{tmp_path}/none.db")


def test_the_other_options_are_kept(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="synchronous"):
        open_backend(f"sqlite://{tmp_path}/records.db?synchronous=never", create=True)
    with pytest.raises(InvalidRequestError, match="unknown option"):
        open_backend(f"sqlite://{tmp_path}/records.db?groups=off", create=True)


@pytest.mark.parametrize(
    ("url", "has_one"),
    [
        ("postgresql://u:p@h/d", True),
        ("postgresql://u@h/d?schema=s&sslPassword=p", True),
        ("mysql://u:p?q@h/d", True),
        ("mysql://u@h/d?ssl=off", False),
        ("sqlite:///me@home:1/shop.db", False),
    ],
)
def test_a_password_in_a_url_is_seen(url: str, has_one: bool) -> None:
    assert has_password(url) is has_one


def test_other_packages_bring_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Callable[..., Backend]:
        raise ImportError

    found = {"cockroachdb": lambda: lambda _url, environment, *, create: MemoryBackend(environment.ids), "odd": broken}
    monkeypatch.setattr(registry, "_find_entry_points", lambda: found)
    assert isinstance(open_backend("cockroachdb://host/shop"), GroupCommit)
    with pytest.raises(UnsupportedError, match="reinstall it"):
        open_backend("odd://host/shop")
    with pytest.raises(InvalidRequestError, match="did you mean cockroachdb"):
        open_backend("cockroach://host/shop")


# --- unusable databases -----------------------------------------------------------------------------------------------
needs_rights = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.mark.parametrize("url", ["postgresql://user:pw-secret@[::1/db", "sqlite://[x/y"])
def test_a_url_with_broken_brackets_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="the url of the database is not valid") as caught:
        open_backend(url, create=True)
    assert "pw-secret" not in str(caught.value)
    assert public_url(url) == "(not a url)"


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="this is a directory: add a file name"):
        open_backend(f"sqlite://{tmp_path}", create=True)


def test_a_file_with_two_names_is_refused_through_both_until_one_is_gone(tmp_path: Path) -> None:
    """SQLite keeps a log beside each name: two processes would not see each other's commits, and lose them."""
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    open_backend(f"sqlite://{first}", create=True).close()
    second.hardlink_to(first)
    for name in (first, second):
        with pytest.raises(InvalidRequestError, match=r"several names .*keep one name.* names=2"):
            open_backend(f"sqlite://{name}", create=True)
    assert {one.name for one in tmp_path.iterdir()} <= {"first.db", "second.db", "first.db-queue"}
    first.unlink()
    first.symlink_to(second)
    for name in (first, second):
        open_backend(f"sqlite://{name}").close()


def test_a_file_that_is_mounted_without_its_directory_is_refused(tmp_path: Path) -> None:
    """As with `docker run -v /data/shop.db:/data/shop.db`: each side would keep a log of its own."""
    file, place = tmp_path / "n.db", tmp_path / "a container"
    open_backend(f"sqlite://{file}", create=True).close()
    place.mkdir()
    opens = f"from {open_backend.__module__} import open_backend as o; o('sqlite://{quote(str(place))}/n.db')"
    mounts = 'mount -t tmpfs none "$2" && touch "$2/n.db" && mount --bind "$1" "$2/n.db" && echo mounted'
    unshared = ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*unshared, "sh", "-c", f'{mounts} && "$0" -c "$3"', sys.executable, file, place, opens]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if "mounted" not in done.stdout:
        pytest.skip(f"no mounts: {done.stderr[:100]}")
    assert "the database file is mounted alone" in done.stderr, done.stderr


def test_a_path_that_no_system_takes_is_refused(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/a%00b", f"{tmp_path}/{'x' * 300}.db"):
        with pytest.raises(AccessDeniedError, match="the database file cannot be opened"):
            open_backend(f"sqlite://{path}", create=True)


@needs_rights
def test_a_directory_without_rights_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(AccessDeniedError, match="the database file cannot be opened"):
        open_backend(f"sqlite://{tmp_path}/n.db", create=True)


def test_a_queue_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "n.db-queue").mkdir()
    database = open_backend(f"sqlite://{tmp_path}/n.db", create=True)
    try:
        with pytest.raises(AccessDeniedError, match="the queue beside the database file cannot be written"):
            database.commit(Commit(puts={b"x": b"1"}))
    finally:
        database.close()


# --- forks in transactions --------------------------------------------------------------------------------------------
@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=needs_postgres),
        pytest.param("mysql", marks=needs_mariadb),
    ]
)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    if request.param == "sqlite":
        url = f"sqlite://{tmp_path}/records.db"
    else:
        new_url: NewUrl = request.getfixturevalue(f"new_{request.param}_url")
        url = new_url()
    found = open_backend(url, create=True)
    found.commit(Commit(puts={b"k": b"0"}))
    yield found
    found.close()


def _refusal(act: Callable[[], object]) -> str:
    try:
        return f"no error: {act()!r}"
    except UnavailableError as error:
        return error.message


def test_a_child_cannot_apply_what_its_parent_applies(backend: Backend) -> None:
    with backend.begin_locking_transaction() as transaction:
        transaction.read([b"k"], exclusive=True)
        commit = Commit(inserts={b"once": b""}, adds={b"n": 1})
        for act in (
            lambda: transaction.read([b"k"], exclusive=True),
            lambda: transaction.scan(b"a", b"z", 5),
            lambda: transaction.apply(commit),
        ):
            assert "belongs to the process that began it" in Child(lambda act=act: _refusal(act)).result()  # type: ignore[misc]  # mypy infers no types for defaults of lambdas
        assert isinstance(transaction.apply(commit), Committed)
    assert backend.get_many([b"n"])[b"n"].number == 1


def test_a_child_that_leaves_a_transaction_leaves_it_to_its_parent(backend: Backend) -> None:
    block = backend.begin_locking_transaction()
    transaction = block.__enter__()
    version = transaction.read([b"k"], exclusive=True)[b"k"].version
    Child(lambda: block.__exit__(None, None, None)).result()
    assert isinstance(transaction.apply(Commit(reads={b"k": version}, puts={b"k": b"1"})), Committed)
    block.__exit__(None, None, None)
    assert isinstance(backend.commit(Commit(reads={b"k": version}, puts={b"k": b"2"})), Conflict)
    assert backend.get_many([b"k"])[b"k"].value == b"1"


def test_a_child_leaves_a_snapshot_as_it_is(backend: Backend) -> None:
    block = backend.snapshot()
    snapshot = block.__enter__()
    for act in (lambda: snapshot.get_many([b"k"]), lambda: snapshot.scan(b"a", b"z", 5)):
        assert "belongs to the process that began it" in Child(lambda act=act: _refusal(act)).result()  # type: ignore[misc]  # mypy infers no types for defaults of lambdas
    Child(lambda: block.__exit__(None, None, None)).result()
    backend.commit(Commit(puts={b"k": b"later"}))
    assert snapshot.get_many([b"k"])[b"k"].value == b"0"
    block.__exit__(None, None, None)
    assert backend.get_many([b"k"])[b"k"].value == b"later"
