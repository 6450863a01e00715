"""`write` refuses a request that cannot be right before it starts Spark, and writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.arguments import parse_options
from holdfast.cli.write import _format_of, _Input
from holdfast.errors import InvalidRequestError
from tests.unit.cli.destinations import run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["flights", "out"], "give --input-format csv|json|parquet|orc|text|avro"),
        (["flights.xlsx", "out"], "does not tell the format"),
        (["flights.csv", "out", "--option", "compression"], "an option is written as key=value"),
        (["flights.csv", "out", "--mode", "apend"], "apend"),
        (["flights.csv", "out", "--format", "parkett"], "no such file format"),
        (["flights.csv", "out", "--committer", "magik"], "unknown committer"),
        (["flights.csv", "out", "--option", "maxRecordPerFile=1"], "did you mean maxRecordsPerFile"),
        (["flights.csv", "out", "--option", "hedaer=true"], "header is one of csv files"),
        (["flights.csv", "out", "--committer", "direct"], "direct runs only with allow_unsafe"),
        (["flights.csv", "s3://bucket/t", "--committer", "manifest"], "manifest needs atomic file rename"),
        (
            ["flights.csv", "out", "--committer", "magic", "--mode", "overwrite-partitions", "--partition-by", "k"],
            "supports only the modes append",
        ),
        (["flights.csv", "out", "--option", "manifestSaveAttempts=0"], "not a whole number from 1"),
        (["flights.csv", "out", "--option", "writeId=a", "--committer", "magic"], "only two_phase remembers"),
        (["flights.csv", "out", "--input-option", "sep"], "an option is written as key=value"),
        (["flights.csv", "out", "--input-option", "sep=;", "--input-option", "SEP=,"], "twice with different values"),
        (["flights.csv", "out", "--input-option", "path=b.csv"], "the command says this in another way: give INPUT"),
        (["flights.csv", "memory://x/y"], "memory:// lives in one process"),
    ],
)
def test_a_wrong_request_exits_2(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    result = run("write", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("flights.csv", "csv"),
        ("s3a://b/flights.CSV.gz", "csv"),
        ("a/b.tsv", "csv"),
        ("events.jsonl.zst", "json"),
        ("part-0.snappy.parquet", "parquet"),
        ("dir.v1/x.orc", "orc"),
        ("notes.txt", "text"),
        ("x.avro", "avro"),
    ],
)
def test_the_extension_tells_the_format(path: str, expected: str) -> None:
    assert _format_of(path) == expected


class Reader:
    """Spark's reader, which finds options in any case and takes the last one."""

    def __init__(self) -> None:
        self.read = self
        self.told: dict[str, str] = {}

    def format(self, name: str) -> Reader:
        self.told["format"] = name
        return self

    def options(self, **given: str) -> Reader:
        self.told |= {name.lower(): value for name, value in given.items()}
        return self

    def schema(self, ddl: str) -> Reader:
        self.told["schema"] = ddl
        return self

    def load(self, _path: str) -> dict[str, str]:
        return self.told


CSV = {"format": "csv", "header": "true", "inferschema": "true", "enforceschema": "false", "sep": ","}


@pytest.mark.parametrize(
    ("path", "options", "schema", "told"),
    [
        ("x.csv", {}, None, CSV),
        ("x.tsv.gz", {}, None, {**CSV, "sep": "\t"}),
        ("x.tsv", {"SEP": "|", "Header": "false"}, None, {**CSV, "sep": "|", "header": "false"}),
        ("x.csv", {}, "id long", {**CSV, "schema": "id long"}),
        ("x.json", {"multiLine": "true"}, None, {"format": "json", "multiline": "true"}),
    ],
)
def test_what_spark_is_told_of_an_input(
    path: str, options: dict[str, str], schema: str | None, told: dict[str, str]
) -> None:
    spark: Any = Reader()
    assert _Input(path, _format_of(path), options, schema).load(spark) == told


@pytest.mark.parametrize("name", ["delimiter", "Delimiter"])
def test_the_other_name_of_a_separator_is_heeded(name: str) -> None:
    """Of the two Spark would take ours."""
    spark: Any = Reader()
    found: Any = _Input("x.csv", "csv", {name: ";"}, None).load(spark)
    assert "sep" not in found and found["delimiter"] == ";"


def test_partition_columns_may_be_said_one_by_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stop(_source: object, request: dict[str, Any], *_: object) -> None:
        raise InvalidRequestError(f"partitioned by {request['partitionby']}")

    monkeypatch.setattr("holdfast.cli.write._write_with_spark", stop)
    arguments = ("write", "x.csv", str(tmp_path / "out"), "--partition-by", "a", "--partition-by", "b,c")
    assert "partitioned by a,b,c" in run(*arguments).stderr


def test_options_may_hold_equals_signs() -> None:
    assert parse_options(["delimiter=="], reserved={}) == {"delimiter": "="}
    with pytest.raises(InvalidRequestError):
        parse_options(["=x"], reserved={})
