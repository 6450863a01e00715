"""Databases that are opened in a wrong way: the error says what to pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.records import open_database
from holdfast.units.watch import watch
from holdfast.units.work_list import open_work_list


def test_a_db_that_is_not_there_wants_to_be_created(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/shop.db"
    (tmp_path / "shop.db").touch()
    with pytest.raises(NotFoundError, match=r"has no tables of Holdfast: check the url, .*\(url, create=True\)"):
        open_database(url)
    (tmp_path / "shop.db").unlink()
    with pytest.raises(NotFoundError, match=r"file does not exist: check the url, .*\(url, create=True\) path="):
        open_database(url)
    with pytest.raises(NotFoundError, match="the directory of the database file does not exist: create it first"):
        open_database(f"sqlite://{tmp_path}/none/shop.db", create=True)


@pytest.mark.parametrize("given", [Path("/tmp/shop.db"), None, b"sqlite:///data/shop.db"])
def test_a_db_is_named_by_a_text(given: object) -> None:
    with pytest.raises(InvalidRequestError, match="a database is named by its url: pass a text"):
        open_database(given, create=True)  # type: ignore[arg-type] # wrong on purpose


def test_an_open_db_is_not_its_url(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/shop.db"
    with pytest.raises(InvalidRequestError, match=r"this is not an open database: pass .* type='str'"):
        watch(url, "words")  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(InvalidRequestError, match=r"this is not an open database: pass .* type='str'"):
        open_work_list(url, "frontier", create=True)  # type: ignore[arg-type] # wrong on purpose
    with (
        open_database(url, create=True) as db,
        pytest.raises(NotFoundError, match=r"name, create=True\) list='frontier'"),
    ):
        open_work_list(db, "frontier")
