"""What a new user can do wrong when a namespace is created or opened is refused before anything happens."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from holdfast.errors import AccessDeniedError, InvalidRequestError
from holdfast.namespace import Configuration, init_namespace, open_namespace
from holdfast.namespace.catalog import database_of, known_namespaces, register_namespace, variable_of


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog of this test alone."""
    file = tmp_path / "config" / "namespaces.json"
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(file))
    return file


def _configuration(tmp_path: Path, name: str = "ns") -> Configuration:
    return Configuration(name=name, data=str(tmp_path / "data"), superuser="root")


def test_a_name_that_is_taken_is_refused_before_the_database_is_made(tmp_path: Path) -> None:
    register_namespace("ns", "sqlite:///elsewhere.db")
    with pytest.raises(InvalidRequestError, match="the catalog has another database under this name"):
        init_namespace(_configuration(tmp_path), f"sqlite://{tmp_path}/n.db")
    assert not (tmp_path / "n.db").exists()


def test_a_catalog_that_cannot_be_written_names_the_way_around(catalog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: object, target: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(AccessDeniedError, match="set HOLDFAST_NAMESPACE_MY_NS to the url of the database"):
        register_namespace("my-ns", "sqlite:///n.db")


def test_the_variable_wins_over_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    register_namespace("my-ns", "sqlite:///a.db")
    assert (database_of("my-ns"), known_namespaces()) == ("sqlite:///a.db", {"my-ns": "sqlite:///a.db"})
    monkeypatch.setenv(variable_of("my-ns"), "sqlite:///b.db")
    assert database_of("my-ns") == "sqlite:///b.db"


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
