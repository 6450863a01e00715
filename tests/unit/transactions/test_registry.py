"""Test how URLs choose a database: whether concurrent callers share commits is an option of every URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.runtime import Environment
from holdfast.transactions.base import ABSENT, Commit, Committed
from holdfast.transactions.group_commit import GroupCommit
from holdfast.transactions.registry import open_backend
from holdfast.transactions.steps import VersionSource
from holdfast.transactions.urls import has_password, public_url
from tests.database_servers import NewUrl
from tests.databases import needs_mariadb, needs_postgres


@pytest.mark.parametrize(("option", "in_groups"), [("", True), ("?group=on", True), ("?group=off", False)])
def test_callers_share_commits_unless_the_url_says_no(tmp_path: Path, option: str, in_groups: bool) -> None:
    backend = open_backend(f"sqlite://{tmp_path}/records.db{option}", create=True)
    try:
        assert isinstance(backend, GroupCommit) is in_groups
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


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:shop 1.db", "/here/shop%201.db"),
        ("sqlite:a%20b/shop.db?synchronous=normal", "/here/a%20b/shop.db?synchronous=normal"),
        ("sqlite:/data/shop.db", "/data/shop.db"),
    ],
)
def test_forgotten_slashes_are_put_into_the_url(
    url: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequestError) as caught:
        open_backend(url, create=True)
    wanted = path.replace("/here", str(tmp_path))
    assert str(caught.value) == f"the URL of an SQLite file has three slashes: write sqlite://{wanted}"


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
        ("postgresql:user:canary@host/shop", "the URL of a database has two slashes: write postgresql://"),
        ("mysql:/host/shop", "the URL of a database has two slashes: write mysql://"),
        ("mysql://u:canary@x@h/d", "an @ in the wrong place"),
        ("mysql://u:c?group=canary@h/d", "an @ in the wrong place"),
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
        open_backend(f"sqlite://{tmp_path}/records.db?group=off&synchronous=never", create=True)
    with pytest.raises(InvalidRequestError, match="unknown option"):
        open_backend(f"sqlite://{tmp_path}/records.db?groups=off", create=True)


@pytest.mark.parametrize("option", ["group=", "group=no", "group=on&group=off"])
def test_a_wrong_value_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(InvalidRequestError, match="'on' or 'off'"):
        open_backend(f"sqlite://{tmp_path}/records.db?{option}", create=True)
    assert not (tmp_path / "records.db").exists()


@needs_postgres
def test_the_option_is_not_the_drivers(new_postgres_url: NewUrl) -> None:
    backend = open_backend(f"{new_postgres_url()}?application_name=one%20two&group=off&connections=2", create=True)
    try:
        assert not isinstance(backend, GroupCommit)
        assert isinstance(backend.commit(Commit(inserts={b"a": b"1"})), Committed)
    finally:
        backend.close()


@needs_mariadb
def test_servers_of_the_other_kind_have_it_too(new_mysql_url: NewUrl) -> None:
    backend = open_backend(f"{new_mysql_url()}?connections=2&group=off", create=True)
    try:
        assert not isinstance(backend, GroupCommit)
        assert isinstance(backend.commit(Commit(inserts={b"a": b"1"})), Committed)
    finally:
        backend.close()


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
