"""`read`: files, options, and cells with control characters."""

from __future__ import annotations

import datetime
import gzip
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from holdfast.commit import TWO_PHASE, SaveMode, open_context
from holdfast.formats.schema_json import arrow_schema_to_json
from tests.servers.moto import MotoServer
from tests.unit.cli.destinations import commit_table, on_screen, run


def read(*arguments: str) -> list[dict[str, object]]:
    result = run("read", *arguments, "--json")
    assert result.exit_code == 0, result.output
    rows: list[dict[str, object]] = json.loads(result.stdout)["rows"]
    return rows


def refusal(*arguments: str) -> str:
    result = run("read", *arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    return result.stderr


def commit_files(url: str, files: Mapping[str, bytes], table: Mapping[str, object], directory: str = "") -> None:
    """Commit a job with these files by extension, and this table record in the log."""
    kept = {"format_options": {}, "partition_by": [], **table}
    ctx = replace(open_context(url), contract=lambda ctx, job, known: kept)
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        for extension, data in files.items():
            attempt.open(directory + attempt.file_name(extension)).write(data)
        commit = attempt.commit()
    assert TWO_PHASE.commit_job(ctx, job, [commit], 1).committed
    ctx.close()


def parquet(columns: Mapping[str, object]) -> bytes:
    data = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(dict(columns)), data)
    return data.getvalue()


def test_a_collated_column_is_not_compared_byte_by_byte(tmp_path: Path) -> None:
    collated = {"name": "s", "type": "string", "nullable": True, "metadata": {"__COLLATIONS": {"s": "icu.UNICODE_CI"}}}
    schema = json.dumps({"type": "struct", "fields": [collated]})
    commit_files(str(tmp_path), {".parquet": parquet({"s": ["abc"]})}, {"schema": schema, "format": "parquet"})
    assert "has a collation" in refusal(str(tmp_path), "--where", "s=ABC")
    assert read(str(tmp_path)) == [{"s": "abc"}]


# --- columns and types ------------------------------------------------------------------------------------------------
def test_columns_come_from_the_log_not_from_the_first_file(tmp_path: Path) -> None:
    """A narrow append hides no column of older data, and a wide append shows its own columns."""
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    at = datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc)
    wide = {"name": pa.array(["a"]), "at": pa.array([at], schema.field("at").type), "id": pa.array([1], pa.int32())}
    kept = {"format": "parquet", "schema": arrow_schema_to_json(schema), "partition_by": []}
    url = str(tmp_path / "t")
    commit_files(url, {".parquet": parquet({"id": pa.array([2], pa.int64())})}, kept)
    commit_files(url, {".parquet": parquet(wide)}, kept)
    document = json.loads(run("read", url, "--json").stdout)
    assert document["columns"] == [
        {"name": "id", "type": "int64"},
        {"name": "name", "type": "string"},
        {"name": "at", "type": "timestamp[us, tz=UTC]"},
    ]
    assert sorted(document["rows"], key=lambda row: row["id"]) == [
        {"id": 1, "name": "a", "at": "2020-01-02T00:00:00+00:00"},
        {"id": 2, "name": None, "at": None},
    ]


def test_a_table_without_files_shows_the_columns_in_the_log(tmp_path: Path) -> None:
    kept = {"format": "parquet", "schema": arrow_schema_to_json(pa.schema([("id", pa.int64())]))}
    commit_files(str(tmp_path), {}, kept)
    document = json.loads(run("read", str(tmp_path), "--json").stdout)
    assert (document["columns"], document["rows"]) == ([{"name": "id", "type": "int64"}], [])


def test_options_in_the_log_apply_by_default(tmp_path: Path) -> None:
    schema = arrow_schema_to_json(pa.schema([("a", pa.string()), ("b", pa.int32())]))
    kept = {"format": "csv", "schema": schema, "format_options": {"sep": ";", "header": "true"}}
    commit_files(str(tmp_path), {".csv": b"a;b\nx;1\n"}, kept)
    assert read(str(tmp_path)) == [{"a": "x", "b": 1}]


# --- options ----------------------------------------------------------------------------------------------------------
def test_text_that_no_log_describes_is_refused(tmp_path: Path) -> None:
    """Files of others, and those in a table's directory that Holdfast did not write."""
    (tmp_path / "x.csv").write_text("id;name\n7;a,b\n")
    assert "csv files that no log describes are read by Spark only: use spark.read" in refusal(str(tmp_path))
    schema = arrow_schema_to_json(pa.schema([("a", pa.string())]))
    url = str(tmp_path / "t")
    commit_files(url, {".json": b'{"a": "x"}\n'}, {"format": "json", "schema": schema})
    assert read(url) == [{"a": "x"}]
    assert "the table is in another format: leave out the format" in refusal(url, "--format", "csv")
    (tmp_path / "t" / "y.json").write_text('{"a": "y"}\n')
    assert "file='y.json'" in refusal(url)


def commit_csv(url: str) -> None:
    """Columns a, b and c by position, and a string p in the directories."""
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("c", pa.int32()), ("p", pa.string())])
    kept = {"format": "csv", "schema": arrow_schema_to_json(schema), "partition_by": ["p"]}
    commit_files(url, {".csv": b"A1,B1,3\n"}, kept, directory="p=7/")


def test_the_columns_of_a_table_are_in_its_log(tmp_path: Path) -> None:
    commit_csv(str(tmp_path))
    assert read(str(tmp_path), "--columns", "c,B") == [{"c": 3, "b": "B1"}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--option", "hedaer=true"], "unknown option: did you mean header"),
        (["--option", "header=ture"], "use true or false"),
        (["--option", "header"], "an option is written as key=value"),
        (["--option", "sep=;", "--option", "SEP=,"], "first='--option sep' second='--option SEP'"),
        (["--option", "columns=a"], "use --columns"),
        (["--option", "path=x"], "use URL"),
        (["--option", "secretKey=geheim"], "credentials do not belong on a command line"),
        (["--option", "xyzzy=1"], "unknown option: use one of the "),
        (["--format", "cvs"], "did you mean csv"),
        (["--where", "nmae=1"], "did you mean name"),
    ],
)
def test_a_wrong_option_is_refused_with_the_nearest(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    schema = arrow_schema_to_json(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    commit_files(str(tmp_path), {".csv": b"7,a\n"}, {"format": "csv", "schema": schema})
    said = refusal(str(tmp_path), *arguments)
    assert sentence in said
    assert len(said) < 200, "nobody wants to read every name that there is"
    assert "geheim" not in said


# --- what a url names -------------------------------------------------------------------------------------------------
def test_one_file(tmp_path: Path) -> None:
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(b"7,a\n"))
    (tmp_path / "x.parquet").write_bytes(parquet({"id": pa.array([8])}))
    assert read(str(tmp_path / "x.txt.gz")) == [{"value": "7,a"}]
    document = json.loads(run("read", f"file://{tmp_path}/x.parquet", "--json").stdout)
    assert (document["rows"], document["files"]) == ([{"id": 8}], 1)
    assert document["url"] == f"file://{tmp_path}/x.parquet"


def test_patterns_are_refused(tmp_path: Path) -> None:
    url = str(tmp_path / "flights")
    commit_table(url)
    for pattern in ("month=1*/", "{month=12,year=1}", "*/*.csv"):
        assert "patterns are not supported: name a directory or a file" in refusal(f"{url}/{pattern}")


def test_a_name_with_pattern_characters_is_taken_literally(tmp_path: Path) -> None:
    (tmp_path / "a[1]").mkdir()
    (tmp_path / "a[1]" / "x.txt").write_text("literal\n")
    (tmp_path / "a1").mkdir()
    (tmp_path / "a1" / "x.txt").write_text("pattern\n")
    assert read(f"{tmp_path}/a[1]") == [{"value": "literal"}]
    assert read(f"{tmp_path}/a[1]/x.txt") == [{"value": "literal"}]


def test_a_file_on_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with MotoServer() as server:
        server.create_bucket("there")
        where = ("--endpoint-url", server.endpoint_url, "--region", "us-east-1")
        import boto3

        s3 = boto3.client("s3", endpoint_url=server.endpoint_url, region_name="us-east-1")
        s3.put_object(Bucket="there", Key="x.txt.gz", Body=gzip.compress(b"1\n"))
        assert read("s3://there/x.txt.gz", *where) == [{"value": "1"}]


# --- cells ------------------------------------------------------------------------------------------------------------
EVIL = "\x1b]0;title\x07\x1b[2J\r\n\t\x9b31m\u202eabc\u2028"


def test_control_characters_in_data_are_escaped(tmp_path: Path) -> None:
    table = {f"na\x1b[1mme\n{EVIL[:4]}": pa.array([EVIL]), "nested": pa.array([[EVIL]])}
    (tmp_path / "x.parquet").write_bytes(parquet(table))
    piped, screen = run("read", str(tmp_path)).stdout, on_screen("read", str(tmp_path), columns=200)
    wide = on_screen("read", str(tmp_path), columns=12)  # no room for a table
    for shown in (piped, screen, wide, run("read", str(tmp_path), "--where", "nmae=1").stderr):
        assert not {
            letter for letter in shown if letter < " " or "\x7f" <= letter <= "\x9f" or letter in "\u202e\u2028"
        } - {"\n"}
    assert "\\x1b[2J\\r\\n\\t\\x9b31m\\u202eabc\\u2028" in piped
    assert len(piped.splitlines()) == 3
    document = run("read", str(tmp_path), "--json").stdout
    assert "\x9b" not in document
    assert json.loads(document)["rows"][0]["nested"] == [EVIL]


def test_cells_of_every_kind(tmp_path: Path) -> None:
    late = 253_402_300_800_000_000  # the first instant of the year 10000, which Python cannot represent
    columns = {
        "bytes": pa.array([b"\x00\xff"], pa.binary()),
        "late": pa.array([late], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "nan": pa.array([float("nan")]),
        "map": pa.array([[("k", {"x": None})]], pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
        "long": pa.array(["y" * 5000]),
    }
    (tmp_path / "x.parquet").write_bytes(parquet(columns))
    (row,) = read(str(tmp_path))
    assert (row["bytes"], row["nan"], row["map"]) == ("AP8=", "nan", [["k", {"x": None}]])
    assert str(row["late"]).startswith("10000-01-01")
    names, values, _ = run("read", str(tmp_path)).stdout.splitlines()
    assert values.split()[0] == "00ff"
    assert values.endswith("y" * 5000)
    assert len(names) < 300, "a long cell does not push the others away"


@pytest.mark.parametrize("limit", ["0", "5"])
def test_no_rows_and_no_columns(tmp_path: Path, limit: str) -> None:
    empty = pa.table({"id": pa.array([], pa.int64())})
    pyarrow.parquet.write_table(empty, tmp_path / "x.parquet")
    assert run("read", str(tmp_path), "-n", limit).stdout == "id\n0 rows of 1 file\n"
    (tmp_path / "y").mkdir()
    pyarrow.parquet.write_table(pa.table({}), tmp_path / "y" / "x.parquet")
    assert run("read", str(tmp_path / "y"), "-n", limit).stdout == "0 rows of 1 file\n"
    assert json.loads(run("read", str(tmp_path / "y"), "--json").stdout)["rows"] == []


def test_limit_0_of_many_rows(tmp_path: Path) -> None:
    commit_table(str(tmp_path))
    document = json.loads(run("read", str(tmp_path), "-n", "0", "--json").stdout)
    assert (document["rows"], document["more"]) == ([], True)
    assert [column["name"] for column in document["columns"]] == ["carrier", "delay", "month"]


def test_two_columns_of_the_same_name(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    assert "several columns have the same name" in refusal(str(tmp_path))


@pytest.mark.parametrize("condition", ["at=2020-01-01 10:00:00", "at = 2020-01-01T11:00:00+01:00", "at>2020-01-01"])
def test_a_condition_on_an_instant_is_in_utc_unless_it_names_a_zone(tmp_path: Path, condition: str) -> None:
    at = pa.array(["2020-01-01 10:00:00"]).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    (tmp_path / "x.parquet").write_bytes(parquet({"at": at, "l": pa.array([[1]])}))
    assert len(read(str(tmp_path), "--where", condition)) == 1
    assert "does not fit the column's type" in refusal(str(tmp_path), "--where", "l=1")


def test_columns_may_be_given_in_several_options(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(parquet({"a": [1], "b": [2], "c": [3], "d": [4]}))
    (row,) = read(str(tmp_path), "--columns", "c", "--columns", "d, a")
    assert list(row.items()) == [("c", 3), ("d", 4), ("a", 1)]


def test_a_directory_inside_a_destination_is_refused(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    commit_table(url)
    folder = next((tmp_path / "t").glob("*=*"))
    said = refusal(str(folder))
    assert "this is a folder inside a destination" in said and f"destination='{(tmp_path / 't').as_uri()}'" in said
    assert len(read(url)) == 3


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("s=x", "x"),
        ("s='x'", "x"),
        ('s = "x" ', "x"),
        ("s=x'", "x'"),
        ("s='x''", "x'"),
        ("s=\"'x'\"", "'x'"),
        ('s="', '"'),
        ("s=\"x'", None),
        ("s=''", ""),
        ("s=", ""),
    ],
)
def test_quotes_around_a_value_are_stripped(tmp_path: Path, condition: str, found: str | None) -> None:
    values = ["x", "x'", "'x'", '"', ""]
    (tmp_path / "a.parquet").write_bytes(parquet({"s": values}))
    assert read(str(tmp_path), "--where", condition) == ([] if found is None else [{"s": found}])


def test_files_of_two_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,v\n1,x\n")
    (tmp_path / "b.json").write_text('{"id": 5}\n')
    result = run("read", str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the files have different formats" in result.stderr
    assert "first='a.csv' other='b.json'" in result.stderr
    assert run("read", str(tmp_path), "--format", "text").exit_code == 0


def test_an_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n")
    (tmp_path / "b.txt").write_bytes(b"\xe4\n")
    result = run("read", str(tmp_path))
    assert result.exit_code == 1
    assert result.stderr.rstrip().endswith("file='b.txt'")
