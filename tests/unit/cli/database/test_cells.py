"""`holdfast database`: create, ls, get, put, delete, scan, drop and gc, on SQLite."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from holdfast.cli.database.rows import parse_json_row
from holdfast.errors import HoldfastError
from holdfast.records import Database, open_database
from holdfast.records.keys import cell_key, dropped_mark_key
from holdfast.transactions.base import Commit
from tests.patience import PATIENCE_S
from tests.unit.cli.destinations import run


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/shop.db?synchronous=normal"


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    """A database with a few tables."""
    with open_database(url, create=True) as db:
        db.create_table("stock")
        db.create_table("prices", history=2)
        db.put("stock", "apples", 5)
        db.put("stock", "apples", "red", column="color")
        db.put("stock", "pears", 7)
        yield db


def _printed(*arguments: str, exit_code: int = 0) -> str:
    result = run("database", *arguments)
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result.stdout if exit_code == 0 else result.stderr


def _lines(*arguments: str) -> list[object]:
    return [json.loads(line) for line in _printed(*arguments, "--json").splitlines()]


# --- tables -----------------------------------------------------------------------------------------------------------
def test_tables_are_created_and_listed(url: str) -> None:
    assert "make the database with holdfast database create" in _printed("ls", url, exit_code=2)
    assert _printed("create", url, "stock") == "created table stock, history: none\n"
    assert _printed("create", url, "prices", "--history", "10") == "created table prices, history: 10\n"
    assert json.loads(_printed("create", url, "log", "--history", "all", "--json")) == {
        "url": url.partition("?")[0],
        "table": "log",
        "history": "all",
    }
    assert _printed("ls", url) == "table   history\nlog     all\nprices  10\nstock   none\n"
    assert _lines("ls", url)[1:] == [{"table": "prices", "history": 10}, {"table": "stock", "history": 0}]
    assert "the table exists" in _printed("create", url, "stock", exit_code=1)
    assert _printed("create", url, "stock", "--exist-ok") == "table stock exists now, history: none\n"
    assert "another history" in _printed("create", url, "stock", "--exist-ok", "--history", "3", exit_code=1)


def test_a_db_without_tables_says_so(url: str) -> None:
    open_database(url, create=True).close()
    assert _printed("ls", url) == "no tables: make one with holdfast database create\n"
    assert _printed("ls", url, "--json") == ""


def test_a_table_is_dropped_for_good(db: Database, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "run this command with --yes" in _printed("drop", url, "stock", exit_code=2)
    assert "did you mean stock" in _printed("drop", url, "stok", "--yes", exit_code=2)
    monkeypatch.setattr(sys, "stdin", None)
    assert "run this command with --yes" in _printed("drop", url, "stock", exit_code=2)
    monkeypatch.undo()
    assert _printed("drop", url, "stock", "--yes") == "dropped stock\n"
    assert [table.name for table in db.tables()] == ["prices"]
    assert json.loads(_printed("drop", url, "prices", "--yes", "--json")) == {"table": "prices", "dropped": True}


def test_what_a_crash_left_is_collected(db: Database, url: str) -> None:
    assert _printed("gc", url) == "nothing to delete\n"
    table = db.table("stock")
    db.backend.commit(Commit(deletes=[table.key], puts={dropped_mark_key(table.id): b""}))
    assert _printed("gc", url) == "deleted 3 records of what was dropped\n"
    assert json.loads(_printed("gc", url, "--json")) == {"url": url.partition("?")[0], "records": 0}


# --- rows -------------------------------------------------------------------------------------------------------------
def test_rows_are_scanned(db: Database, url: str) -> None:
    assert _printed("scan", url, "stock") == "row     color  value\napples  red    5\npears          7\n"
    assert _printed("scan", url, "stock", "--end", "b") == "row     color  value\napples  red    5\n"
    assert _lines("scan", url, "stock") == [
        {"row": "apples", "columns": {"color": "red", "value": 5}},
        {"row": "pears", "columns": {"value": 7}},
    ]
    assert _printed("scan", url, "stock", "--prefix", "zz") == "no rows\n"


def test_a_scan_says_if_there_is_more(db: Database, url: str) -> None:
    for more in ([], ["--json"]):
        result = run("database", "scan", url, "stock", "--limit", "1", *more)
        assert (result.exit_code, result.stdout.count("apples"), "pears" in result.stdout) == (0, 1, False)
        assert result.stderr == "there are more rows than 1: see --limit, or --json for all\n"
    assert run("database", "scan", url, "stock", "--limit", "2").stderr == ""


def test_a_limit_may_be_larger_than_any_table(db: Database, url: str) -> None:
    assert "apples" in _printed("scan", url, "stock", "--limit", "9" * 30)


def test_a_large_table_is_printed_as_json_and_its_beginning_is_shown(db: Database, url: str) -> None:
    db.create_table("large")
    db.transact(lambda cells: [cells.put("large", number, number) for number in range(3000)])
    assert _lines("scan", url, "large") == [{"row": row, "columns": {"value": row}} for row in range(3000)]
    assert len(_printed("scan", url, "large").splitlines()) == 101
    found = _printed("scan", url, "large", "--row-type", "int", "--start", "-5", "--end", "30").splitlines()
    assert [line.split() for line in found[1:]] == [[str(row), str(row)] for row in range(30)]


def test_rows_of_every_type_are_named(db: Database, url: str) -> None:
    for arguments, row in (
        (["-5", "--row-type", "int"], -5),
        (["-5"], "-5"),
        (['["user1", 5]', "--row-type", "json"], ("user1", 5)),
        (['["user1"]', "--row-type", "json"], "user1"),
        (['""', "--row-type", "json"], ""),
        (['[{"$bytes": "AP8="}, "a"]', "--row-type", "json"], (b"\x00\xff", "a")),
    ):
        _printed("put", url, "stock", *arguments, "x")
        assert db.get("stock", row) == "x", row  # type: ignore[arg-type] # mypy joins the rows to objects
        assert _printed("get", url, "stock", *arguments) == "x\n"
    shown = _printed("scan", url, "stock", "--row-type", "json", "--prefix", '["user1"]').splitlines()
    assert [line.rpartition("  ")[0].strip() for line in shown[1:]] == ["user1", '["user1", 5]']


@pytest.mark.parametrize(
    ("row", "kind", "message"),
    [
        ("5x", "int", "the row is not an integer"),
        ("1" * 5000, "int", "the row is not an integer"),
        ("[1,", "json", "the row is not JSON"),
        ("[1.5]", "json", "a row in JSON consists of"),
        ("true", "json", "a row in JSON consists of"),
        ('{"$bytes": "?"}', "json", "not base64"),
        ('{"$bytes": "é"}', "json", "not base64"),
        ("[]", "json", "at least two parts"),
        ("", "text", "the value is empty: give one\n"),  # and an argument cannot be left out
        ("a", "integer", "did you mean int"),
    ],
)
def test_wrong_rows_are_refused(db: Database, url: str, row: str, kind: str, message: str) -> None:
    assert message in _printed("get", url, "stock", row, "--row-type", kind, exit_code=2)


# --- cells ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "text", "value", "shown"),
    [
        ("text", "5", "5", "5"),
        ("text", "-a\nb\x1b", "-a\nb\x1b", "-a\\nb\\x1b"),
        ("int", "-5", -5, "-5"),
        ("int", "9" * 4000, 10**4000 - 1, "9" * 4000),
        ("float", "1e3", 1000.0, "1000.0"),
        ("float", "-inf", -float("inf"), "-inf"),
        ("float", " Infinity", float("inf"), "inf"),
        ("json", '{"a": [1, null, "é"]}', {"a": [1, None, "é"]}, '{"a": [1, null, "é"]}'),
        ("json", "true", True, "true"),
        ("bytes", "AP8=", b"\x00\xff", "00ff"),
    ],
)
def test_values_of_each_type(db: Database, url: str, kind: str, text: str, value: object, shown: str) -> None:
    arguments = [url, "stock", "apples", "--column", "c"]
    assert _printed("put", *arguments, "--type", kind, "--", text) == f"put {kind} into stock: apples, c\n"
    found = db.get("stock", "apples", column="c")
    assert (found, type(found)) == (value, type(value))
    assert _printed("get", *arguments) == f"{shown}\n"
    assert json.loads(_printed("get", *arguments, "--json"))["type"] == kind
    assert f"{shown}" in _printed("scan", url, "stock")


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("int", "1e3", "the value is not an integer"),
        ("int", "1" * 4001, "the value is not an integer"),
        ("float", "1,5", "the value is not a float"),
        ("float", "1e999", "the value is too large for a float"),
        ("float", "-1" + "0" * 400, "the value is too large for a float"),
        ("json", "{", "the value is no JSON"),
        ("json", "3", "a JSON value is a list"),
        ("json", "[0.12345678901234567890]", "more digits than a float keeps"),
        ("json", '{"x": 1, "x": 2}', "has a key twice"),
        ("json", "[NaN]", "JSON has no infinities"),
        ("json", "[" * 100_000, "the value is no JSON"),
        ("bytes", "?", "the value is not base64"),
        ("bytes", "é", "the value is not base64"),
        ("array", "1", "not a valid choice"),
    ],
)
def test_wrong_values_are_refused(db: Database, url: str, kind: str, text: str, message: str) -> None:
    assert message in _printed("put", url, "stock", "apples", text, "--type", kind, exit_code=2)
    assert db.get("stock", "apples") == 5


def test_raw_values(db: Database, url: str) -> None:
    db.put("stock", "apples", b"\x00\xff\n")
    assert run("database", "get", url, "stock", "apples", "--raw").stdout_bytes == b"\x00\xff\n"
    db.put("stock", "apples", "é")
    assert run("database", "get", url, "stock", "apples", "--raw").stdout_bytes == "é".encode()
    assert "leave out --raw" in _printed("get", url, "stock", "pears", "--raw", exit_code=2)
    assert "leave out --raw" in run("database", "get", url, "stock", "pears", "--raw", "--json").stderr


def test_what_json_cannot_express_has_a_form_of_its_own(db: Database, url: str) -> None:
    array = np.arange(6, dtype="<i4").reshape(2, 3)
    values = {
        "array": array,
        "bytes": b"\xff",
        "dictionary": {"$bytes": "no"},
        "float": float("nan"),
        "int": 10**5000,
        "list": [{"$bytes": "no"}],
    }

    def write(cells: object) -> None:
        for name, value in values.items():
            cells.put("stock", "odd", value, column=name)  # type: ignore[attr-defined] # a CellTransaction

    db.transact(write)
    found = _lines("scan", url, "stock", "--prefix", "odd")
    data = base64.b64encode(array.tobytes()).decode()
    assert found == [
        {
            "row": "odd",
            "columns": {
                "array": {"$array": data, "dtype": "<i4", "shape": [2, 3]},
                "bytes": {"$bytes": "/w=="},
                "dictionary": {"$json": {"$bytes": "no"}},
                "float": {"$float": "nan"},
                "int": {"$int": hex(10**5000)},
                "list": [{"$bytes": "no"}],
            },
        }
    ]
    shown = _printed("scan", url, "stock", "--prefix", "odd")
    assert "int32 [[0, 1, 2], [3, 4, 5]]" in shown
    db.put("stock", "odd", np.zeros((100, 2)))
    assert _printed("get", url, "stock", "odd") == "float64 array of 100 x 2\n"


def test_a_missing_cell_is_told(db: Database, url: str) -> None:
    assert "the table has no such row" in _printed("get", url, "stock", "plums", exit_code=2)
    assert "columns color, value" in _printed("get", url, "stock", "apples", "--column", "colour", exit_code=2)
    assert "the table has no such row" in _printed("get", url, "stock", "9" * 26, exit_code=2)
    found = run("database", "get", url, "stock", "plums", "--json")
    assert json.loads(found.stdout)["kind"] == "NotFoundError"


def test_rows_that_look_alike_are_told_apart(db: Database, url: str) -> None:
    assert _printed("put", url, "stock", "3", "text") == 'put text into stock: "3", value\n'
    db.put_many("stock", [(7, "int"), (("a", 1), "tuple"), ('["b", 1]', "text")])
    shown = _printed("scan", url, "stock")
    assert all(row in shown for row in ("\n7 ", '\n"3" ', "\napples ", r'"[\"b\", 1]"', '\n["a", 1]'))
    for row, kind, hint in (
        ("7", "text", "the row 7 of another type, see --row-type int"),
        ("3", "int", 'the row "3" of another type, see --row-type text'),
        ('["a", 1]', "text", 'the row ["a", 1] of another type, see --row-type json'),
        ('["b", 1]', "json", "see --row-type text"),
        ('"3"', "text", 'the row "3" of another type, see --row-type json'),
    ):
        assert hint in _printed("get", url, "stock", row, "--row-type", kind, exit_code=2)
        result = run("database", "delete", url, "stock", row, "--row-type", kind)
        assert (result.exit_code, hint in result.stderr) == (0, True)
        db.put("prices", parse_json_row(row) if kind == "text" else row, 1)
        assert hint in _printed("get", url, "prices", row, "--row-type", kind, "--history", exit_code=2)


def test_cells_and_rows_are_deleted(db: Database, url: str) -> None:
    assert _printed("delete", url, "stock", "apples", "--column", "nothing") == "there was nothing to delete\n"
    assert _printed("delete", url, "stock", "apples", "--column", "color") == "deleted 1 cell\n"
    assert db.get_row("stock", "apples") == {"value": 5}
    db.put("stock", "apples", "red", column="color")
    document = json.loads(_printed("delete", url, "stock", "apples", "--json"))
    assert document == {"table": "stock", "row": "apples", "deleted": ["color", "value"]}
    assert db.get_row("stock", "apples") == {}
    assert _printed("delete", url, "stock", "apples") == "there was nothing to delete\n"


def test_a_cell_that_cannot_be_read_can_be_deleted(db: Database, url: str) -> None:
    color = cell_key(db.table("stock").id, "apples", b"color")
    db.backend.commit(Commit(puts={color: b"f, damaged"}))
    assert "row='apples' column='color'" in _printed("scan", url, "stock", exit_code=1)
    assert "the row has the columns color, value" in _printed(
        "get", url, "stock", "apples", "--column", "size", exit_code=2
    )
    assert _printed("delete", url, "stock", "apples", "--column", "color") == "deleted 1 cell\n"
    assert db.get_row("stock", "apples") == {"value": 5}
    db.backend.commit(Commit(puts={color: b"f, damaged"}))
    assert _printed("delete", url, "stock", "apples") == "deleted 2 cells\n"
    assert db.get_row("stock", "apples") == {}


def test_histories_are_shown(db: Database, url: str) -> None:
    assert "the table has no such row" in _printed("get", url, "prices", "apples", "--history", exit_code=2)
    for value in ("1", "2"):
        _printed("put", url, "prices", "apples", value, "--type", "int")
    _printed("delete", url, "prices", "apples")
    shown = _printed("get", url, "prices", "apples", "--history")
    assert shown == "counter  type     value\n      2  int      2\n      3  deleted\n"
    assert json.loads(_printed("get", url, "prices", "apples", "--history", "--json"))["history"] == [
        {"counter": 2, "deleted": False, "type": "int", "value": 2},
        {"counter": 3, "deleted": True, "type": None, "value": None},
    ]
    assert "keeps no history" in _printed("get", url, "stock", "apples", "--history", exit_code=2)
    assert "leave out --raw" in _printed("get", url, "prices", "apples", "--history", "--raw", exit_code=2)


# --- strangers --------------------------------------------------------------------------------------------------------
def test_the_url_may_come_from_a_variable(db: Database, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "secret" not in _printed("ls", "me:secret@host/shop", exit_code=2)
    assert "set HOLDFAST_DATABASE_MY_SHOP to it" in _printed("ls", "my-shop", exit_code=2)
    monkeypatch.setenv("HOLDFAST_DATABASE_MY_SHOP", "shop.db")
    assert "set HOLDFAST_DATABASE_MY_SHOP to it" in _printed("ls", "my-shop", exit_code=2)
    monkeypatch.setenv("HOLDFAST_DATABASE_MY_SHOP", url)
    assert _printed("get", "my-shop", "stock", "pears") == "7\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("./shop.db", "write sqlite:///directory/file.db for a file"),
        ("", "write sqlite:///directory/file.db for a file"),
        ("sqlit:///x.db", "did you mean sqlite"),
        ("sqlite:x.db", "a database needs a URL such as sqlite:///directory/file.db"),
        ("sqlite:///nowhere/at/all.db", "check the url"),
        ("memory://x", "ends with this command"),
        ("postgresql://ann:hush@host/db", "a password does not belong on a command line"),
        ("mysql://ann:hu@sh@host/db", "a password does not belong on a command line"),
        ("postgresql://ann@host/db?password=hush", "a password does not belong on a command line"),
    ],
)
def test_wrong_urls_are_refused(given: str, message: str) -> None:
    result = run("database", "ls", given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "hush" not in result.stderr
    assert "hu@sh" not in result.stderr


def test_an_unreachable_database_has_an_exit_code_of_its_own() -> None:
    assert "cannot be reached" in _printed("ls", "postgresql://ann@127.0.0.1:1/db", exit_code=3)


def test_a_hyphen_and_letters_are_an_argument_and_no_options(db: Database, url: str) -> None:
    for value in ("-3h", "-h", "-xh"):
        assert "put text" in _printed("put", url, "stock", "-1h", value)
        assert db.get("stock", "-1h") == value
    for command in ("get", "put", "delete"):
        assert "Usage:" in _printed(command, "-h")


def test_a_wrong_name_makes_no_file(tmp_path: Path) -> None:
    assert "the name of a table" in _printed("create", f"sqlite://{tmp_path}/new.db", "a b", exit_code=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scan"], "Missing argument 'TABLE'"),
        (["put", "stock", "apples"], "Missing argument 'VALUE'"),
        (["put", "stock", "apples", "1", "--colum", "a"], "Did you mean '--column'?"),
        (["put", "stock", "apples", "--typ", "int"], "'--type'?"),
        (["put", "stock", "apples", "1", "2"], "unexpected extra argument"),
        (["create", "t", "--history", "-1"], "write one, such as 10, or all"),
        (["create", "t", "--history", "many"], "write one, such as 10, or all"),
        (["create", "a b"], "the name of a table"),
        (["scan", "stock", "--limit", "0"], "--limit"),
        (["scan", "stock", "--prefix", "a", "--end", "b"], "not both"),
        (["ls", "stock"], "unexpected extra argument"),
        (["scan", "stock", "--prefix", ""], "the value is empty"),
        (["scan", "stok"], "did you mean stock"),
    ],
)
def test_wrong_usage_is_one_sentence(db: Database, url: str, arguments: list[str], message: str) -> None:
    command, *rest = arguments
    shown = _printed(command, url, *rest, exit_code=2)
    assert message in shown
    assert len([line for line in shown.splitlines() if not line.startswith("help: ")]) == 1
    before = db.get_row("stock", "apples")
    assert before == {"color": "red", "value": 5}


def test_a_closed_pipe_ends_the_command_quietly(db: Database, url: str) -> None:
    db.transact(lambda cells: [cells.put("stock", number, "x" * 100) for number in range(5000)])
    command = f"{sys.executable} -m holdfast.cli database scan '{url}' stock --json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert (json.loads(done.stdout.split("\n")[0])["row"], done.stderr) == ("apples", "")
    assert done.stdout.endswith("\n0\n")


def test_errors_of_the_db_are_those_of_the_command(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Database) -> int:
        raise HoldfastError("no")

    open_database(url, create=True).close()
    monkeypatch.setattr(Database, "collect", fail)
    assert _printed("gc", url, exit_code=2) == "error: no\n"
