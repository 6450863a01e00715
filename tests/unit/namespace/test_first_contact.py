"""What a new user can do wrong when a namespace is created or opened is refused before anything happens."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
from pathlib import Path

import pytest

from holdfast.errors import AccessDeniedError, CorruptDataError, InvalidRequestError, UnavailableError
from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.namespace.catalog import find_database_url, namespace_variable, read_catalog, register_namespace
from holdfast.namespace.keys import CONFIGURATION
from holdfast.runtime import SystemClock
from holdfast.transactions.base import Commit
from tests.clocks import StillClock


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog of this test alone."""
    file = tmp_path / "config" / "namespaces.json"
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(file))
    return file


def _configuration(tmp_path: Path, name: str = "ns") -> Configuration:
    return Configuration(name=name, data=str(tmp_path / "data"), superuser="root")


def test_a_name_that_is_taken_is_refused_before_the_database_is_made(tmp_path: Path) -> None:
    register_namespace("ns", "sqlite:///elsewhere.db", StillClock())
    with pytest.raises(InvalidRequestError, match="the catalog has another database under this name"):
        init_namespace(_configuration(tmp_path), f"sqlite://{tmp_path}/n.db")
    assert not (tmp_path / "n.db").exists()


def test_a_catalog_that_cannot_be_written_names_the_way_around(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: object, target: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(AccessDeniedError, match="set HOLDFAST_NAMESPACE_MY_NS to the url of the database"):
        register_namespace("my-ns", "sqlite:///n.db", StillClock())


def test_a_catalog_that_could_not_be_replaced_leaves_no_file(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register_namespace("one", "sqlite:///data/one.db", SystemClock())
    assert catalog.stat().st_mode & 0o777 == 0o600, "a URL may have a password"
    before = {path: path.read_bytes() for path in catalog.parent.iterdir()}

    def fail(*_paths: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(AccessDeniedError):
        register_namespace("two", "sqlite:///data/two.db", SystemClock())
    assert {path: path.read_bytes() for path in catalog.parent.iterdir()} == before


def test_a_catalog_that_cannot_be_written_is_noticed_before_anything_is_created(tmp_path: Path, catalog: Path) -> None:
    catalog.parent.mkdir()
    (catalog.parent / f"{catalog.name}.lock").mkdir()  # stands for a directory that cannot be written
    with pytest.raises(AccessDeniedError, match="name another file in HOLDFAST_NAMESPACES"):
        init_namespace(_configuration(tmp_path), f"sqlite://{tmp_path}/n.db")
    assert [path.name for path in tmp_path.iterdir()] == ["config"]
    assert init_namespace(_configuration(tmp_path), f"sqlite://{tmp_path}/n.db", register=False)


def test_names_that_are_registered_at_the_same_time_are_all_there(catalog: Path) -> None:
    children = []
    for number in range(8):
        child = os.fork()
        if not child:
            try:
                for step in range(5):
                    register_namespace(f"n{number}-{step}", "sqlite:///n.db", SystemClock())
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    assert len(read_catalog()) == 40
    assert sorted(file.name for file in catalog.parent.iterdir()) == [catalog.name, f"{catalog.name}.lock"]


def test_a_catalog_that_stays_locked_is_given_up(catalog: Path) -> None:
    catalog.parent.mkdir()
    clock = StillClock()
    with (catalog.parent / f"{catalog.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UnavailableError, match="has had this locked for 10 s"):
            register_namespace("ns", "sqlite:///n.db", clock)
    assert sum(clock.waits) == pytest.approx(10, abs=0.05)
    register_namespace("ns", "sqlite:///n.db", clock)


@pytest.mark.parametrize(
    "content", ['{"a": 5, "b": "sqlite:///b.db"}', '{"a": "sqlite:///a.db", "b": null}', "[]", "{"]
)
def test_a_file_that_is_no_catalog_is_refused(catalog: Path, content: str) -> None:
    catalog.parent.mkdir()
    catalog.write_text(content)
    with pytest.raises(CorruptDataError):
        read_catalog()


@pytest.mark.parametrize("exists", [True, False])
def test_a_catalog_that_is_a_link_stays_one(tmp_path: Path, catalog: Path, exists: bool) -> None:
    """As in a directory of dotfiles."""
    real = tmp_path / "dotfiles" / "real.json"
    catalog.parent.mkdir()
    catalog.symlink_to(real)
    if exists:
        real.parent.mkdir()
        real.write_text("{}")
    register_namespace("ns", "sqlite:///n.db", SystemClock())
    assert (catalog.is_symlink(), json.loads(real.read_text())) == (True, {"ns": "sqlite:///n.db"})
    assert read_catalog() == {"ns": "sqlite:///n.db"}


def test_a_user_without_a_home_names_a_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("HOLDFAST_NAMESPACES")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    for call in (
        read_catalog,
        lambda: find_database_url("ns"),
        lambda: register_namespace("ns", "sqlite:///n.db", StillClock()),
    ):
        with pytest.raises(InvalidRequestError, match="name a catalog of namespaces in HOLDFAST_NAMESPACES"):
            call()
    monkeypatch.setenv(namespace_variable("ns"), "sqlite:///n.db")
    assert find_database_url("ns") == "sqlite:///n.db"


def test_a_configuration_of_a_newer_release(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/n.db"
    init_namespace(_configuration(tmp_path), url, register=False)
    with open_namespace(url, user="root") as namespace:
        value = namespace.database.get_many([CONFIGURATION])[CONFIGURATION].value
        namespace.database.commit(Commit(puts={CONFIGURATION: value.replace(b"{", b'{"new": 1,', 1)}))
    with pytest.raises(CorruptDataError, match=r"does not know: upgrade Holdfast entries=\['new'\]"):
        open_namespace(url, user="root")


def test_an_empty_user_is_not_the_user_of_the_process(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/n.db"
    init_namespace(_configuration(tmp_path), url, register=False)
    with pytest.raises(InvalidRequestError, match="is empty: give one"):
        open_namespace(url, user="")


def test_the_variable_wins_over_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    register_namespace("my-ns", "sqlite:///a.db", StillClock())
    assert (find_database_url("my-ns"), read_catalog()) == ("sqlite:///a.db", {"my-ns": "sqlite:///a.db"})
    monkeypatch.setenv(namespace_variable("my-ns"), "sqlite:///b.db")
    assert find_database_url("my-ns") == "sqlite:///b.db"


@pytest.mark.parametrize("options", [{"user": ""}, {"database": ""}])
def test_an_empty_value_never_means_the_default(tmp_path: Path, options: dict[str, str]) -> None:
    init_namespace(_configuration(tmp_path), f"sqlite://{tmp_path}/n.db")
    with pytest.raises(InvalidRequestError, match="is empty: give one, or leave it out"):
        open_namespace("holdfast://ns", user=options.get("user"), database=options.get("database"))


def test_a_user_without_a_name_has_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init_namespace(_configuration(tmp_path), f"sqlite://{tmp_path}/n.db")

    def no_name() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", no_name)
    with pytest.raises(InvalidRequestError, match="no name for the user of this process: name a user"):
        open_namespace("holdfast://ns")
    with open_namespace("holdfast://ns", user="somebody") as namespace:
        assert namespace.caller.user == "somebody"


@pytest.mark.parametrize("wrong", [{"replication": 0}, {"replication": 513}, {"block_size": 0}, {"safety_age_s": -1}])
def test_numbers_that_clients_could_not_use_are_refused(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError, match=next(iter(wrong))):
        Configuration(name="ns", data=str(tmp_path), superuser="root", **wrong)  # type: ignore[arg-type]  # all are numbers
