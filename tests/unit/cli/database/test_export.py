"""`holdfast database export`: whole files of one snapshot, in every format, or no file."""

from __future__ import annotations

import csv
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.cli.database import export as files
from holdfast.records import Database, open_database
from holdfast.records.database import DatabaseSnapshot
from tests.unit.cli.destinations import run

_ENDINGS = ["jsonl", "csv", "parquet"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/shop.db?synchronous=normal"


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    with open_database(url, create=True) as db:
        db.create_table("stock")
        yield db


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An empty directory for files."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def _export(url: str, file: Path, *more: str, exit_code: int = 0) -> str:
    result = run("database", "export", url, "stock", str(file), *more)
    assert result.exit_code == exit_code, result.output
    return result.stdout if exit_code == 0 else result.stderr


def _put(db: Database, rows: dict[Any, dict[str, Any]]) -> None:
    db.transact(
        lambda cells: [
            cells.put("stock", row, value, column=name)
            for row, values in rows.items()
            for name, value in values.items()
        ]
    )


def _records(file: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(file.read_bytes().decode(), newline="")))


def test_columns_of_one_type_have_it(db: Database, url: str, out: Path) -> None:
    rows = {
        "a": {"b": b"\xff", "f": 1.5, "i": -(2**63), "t": 'say "hi", ok\n', "x": True},
        "b": {"b": b"", "f": float("nan"), "i": 2**63 - 1, "t": "", "x": False},
        "c": {"i": 0},
    }
    _put(db, rows)
    _export(url, out / "s.parquet")
    table = pq.read_table(out / "s.parquet")
    assert {field.name: str(field.type) for field in table.schema} == {
        "row": "string",
        "b": "binary",
        "f": "double",
        "i": "int64",
        "t": "string",
        "x": "bool",
    }
    found = table.to_pylist()
    assert str(found[1].pop("f")) == "nan"
    assert found == [
        {"row": "a", **rows["a"]},
        {"row": "b", "b": b"", "i": 2**63 - 1, "t": "", "x": False},
        {"row": "c", "b": None, "f": None, "i": 0, "t": None, "x": None},
    ]
    _export(url, out / "s.csv")
    lines = _records(out / "s.csv")
    assert lines == [
        ["row", "b", "f", "i", "t", "x"],
        ["a", "/w==", "1.5", str(-(2**63)), 'say "hi", ok\n', "true"],
        ["b", "", "NaN", str(2**63 - 1), "", "false"],
        ["c", "", "", "0", "", ""],
    ]


def test_columns_of_several_types_are_json(db: Database, url: str, out: Path) -> None:
    values = [1, "1", 1.5, b"\xff", [1], {"$a": 1}, 10**30, np.arange(2, dtype="<i2")]
    rows: list[Any] = [1, "1", ("a", 1), b"\xff", -5, "x", "y", "z"]
    _put(db, {row: {"value": value} for row, value in zip(rows, values, strict=True)})
    forms = [
        1,
        "1",
        1.5,
        {"$bytes": "/w=="},
        [1],
        {"$json": {"$a": 1}},
        10**30,
        {"$array": "AAABAA==", "dtype": "<i2", "shape": [2]},
    ]
    row_forms = [1, "1", ["a", 1], {"$bytes": "/w=="}, -5, "x", "y", "z"]
    expected = sorted(map(json.dumps, zip(row_forms, forms, strict=True)))
    _export(url, out / "s.parquet")
    found = [(json.loads(one["row"]), json.loads(one["value"])) for one in pq.read_table(out / "s.parquet").to_pylist()]
    assert sorted(map(json.dumps, found)) == expected
    _export(url, out / "s.csv")
    read = [(json.loads(row), json.loads(value)) for row, value in _records(out / "s.csv")[1:]]
    assert sorted(map(json.dumps, read)) == expected
    assert _export(url, out / "s.jsonl").startswith("wrote 8 rows, ")
    lines = [json.loads(line) for line in (out / "s.jsonl").read_text().splitlines()]
    assert sorted(json.dumps((one["row"], one["columns"]["value"])) for one in lines) == expected


@pytest.mark.parametrize("ending", _ENDINGS)
def test_large_tables_are_one_snapshot(
    db: Database, url: str, out: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BATCH_BYTES", 1000)
    db.transact(lambda cells: [cells.put("stock", number, f"value {number}") for number in range(9000)])
    scan = DatabaseSnapshot.scan

    def disturbed(self: DatabaseSnapshot, table: str) -> Iterator[Any]:
        for number, one in enumerate(scan(self, table)):
            if number == 10:
                db.put("stock", 8999, "changed")
                db.put("stock", 9001, 5)
                db.delete("stock", 5000)
            yield one

    monkeypatch.setattr(DatabaseSnapshot, "scan", disturbed)
    document = json.loads(_export(url, out / f"s.{ending}", "--json"))
    assert document["rows"] == 9000
    assert document["bytes"] == (out / f"s.{ending}").stat().st_size
    if ending == "parquet":
        found = pq.read_table(out / "s.parquet").to_pydict()
        assert found == {"row": list(range(9000)), "value": [f"value {number}" for number in range(9000)]}
    else:
        lines = (out / f"s.{ending}").read_text().splitlines()
        assert len(lines) == (9001 if ending == "csv" else 9000)
        assert "value 8999" in lines[-1]


@pytest.mark.parametrize("ending", _ENDINGS)
def test_an_empty_table_is_a_file_without_rows(db: Database, url: str, out: Path, ending: str) -> None:
    assert "wrote 0 rows" in _export(url, out / f"s.{ending}")
    if ending == "parquet":
        assert pq.read_table(out / "s.parquet").schema == pa.schema([("row", pa.string())])
    else:
        assert (out / f"s.{ending}").read_text() == ("row\n" if ending == "csv" else "")


@pytest.mark.parametrize("ending", _ENDINGS)
def test_a_file_is_replaced_only_if_allowed(db: Database, url: str, out: Path, ending: str) -> None:
    file = out / f"s.{ending.upper()}"
    file.write_text("mine")
    assert "replace it with --overwrite" in _export(url, file, exit_code=1)
    assert file.read_text() == "mine"
    _export(url, file, "--overwrite")
    assert file.read_bytes() != b"mine"


@pytest.mark.parametrize("ending", _ENDINGS)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), OSError(28, "No space left on device")])
def test_an_interrupted_export_leaves_nothing(
    db: Database, url: str, out: Path, ending: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.transact(lambda cells: [cells.put("stock", number, number) for number in range(100)])
    (out / f"s.{ending}").write_text("mine")
    scan = DatabaseSnapshot.scan

    def interrupted(self: DatabaseSnapshot, table: str) -> Iterator[Any]:
        for number, one in enumerate(scan(self, table)):
            if number == 50:
                raise error
            yield one

    monkeypatch.setattr(DatabaseSnapshot, "scan", interrupted)
    result = run("database", "export", url, "stock", str(out / f"s.{ending}"), "--overwrite")
    assert result.exit_code == {KeyboardInterrupt: 130, SystemExit: 143}.get(type(error), 1)
    assert [one.name for one in out.iterdir()] == [f"s.{ending}"]
    assert (out / f"s.{ending}").read_text() == "mine"


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("s.xlsx", "use .jsonl, .csv or .parquet"),
        ("s", "use .jsonl, .csv or .parquet"),
        ("", "use .jsonl, .csv or .parquet"),
        ("none/s.csv", "the local path does not exist"),
        ("d.csv", "this is a directory"),
    ],
)
def test_wrong_files_are_refused(db: Database, url: str, out: Path, file: str, message: str) -> None:
    (out / "d.csv").mkdir()
    result = run("database", "export", url, "stock", f"{out}/{file}" if file else "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_tables_that_do_not_fit_are_refused(db: Database, url: str, out: Path) -> None:
    assert run("database", "export", url, "stok", str(out / "s.csv")).exit_code == 2
    db.put("stock", "a", 1, column="row")
    assert "export to a .jsonl file" in _export(url, out / "s.csv", exit_code=2)
    db.delete("stock", "a", column="row")
    db.transact(lambda cells: [cells.put("stock", "a", 1, column=f"c{number}") for number in range(1001)])
    assert "more than 1,000 columns" in _export(url, out / "s.parquet", exit_code=2)
    assert list(out.iterdir()) == []
    _export(url, out / "s.jsonl")


def test_a_text_that_csv_does_not_hold_is_refused(db: Database, url: str, out: Path) -> None:
    db.put("stock", "apples", "a\0b", column="note")
    shown = _export(url, out / "stock.csv", exit_code=2)
    assert "contains NUL" in shown and "export to a .jsonl file column='note'" in shown
    assert list(out.iterdir()) == []


def test_a_signal_ends_the_command(db: Database, url: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real Ctrl-C, in the midst of the rows."""
    db.transact(lambda cells: [cells.put("stock", number, number) for number in range(100)])
    scan = DatabaseSnapshot.scan

    def signaled(self: DatabaseSnapshot, table: str) -> Iterator[Any]:
        for number, one in enumerate(scan(self, table)):
            if number == 50:
                signal.raise_signal(signal.SIGINT)
            yield one

    monkeypatch.setattr(DatabaseSnapshot, "scan", signaled)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = run("database", "export", url, "stock", str(out / "s.jsonl"), "--json")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.exit_code, json.loads(result.stdout)["kind"]) == (130, "Interrupted")
    assert list(out.iterdir()) == []
