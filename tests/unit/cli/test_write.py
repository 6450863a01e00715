"""`write` refuses an invalid request before it starts Spark, and writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.arguments import parse_key_value_pairs, parse_option_pairs
from holdfast.cli.write import WriteInput, find_input_format
from holdfast.errors import InvalidRequestError
from holdfast.options.write import WriteRequest
from holdfast.stores.provider import GivenOption
from tests.unit.cli.destinations import run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["flights", "out"], "give --input-format csv|json|parquet|orc|text|avro"),
        (["flights.xlsx", "out"], "does not tell the format"),
        (["flights.csv", "out"], "the input does not exist: check its path input='flights.csv'"),
        (["flights.csv", "out", "--option", "compression"], "an option is written as key=value"),
        (["flights.csv", "out", "--mode", "apend"], "apend"),
        (["flights.csv", "out", "--format", "parkett"], "no such file format"),
        (["flights.csv", "out", "--committer", "magik"], "unknown committer"),
        (["flights.csv", "out", "--option", "maxRecordPerFile=1"], "did you mean maxRecordsPerFile"),
        (["flights.csv", "out", "--option", "hedaer=true"], "header is an option of csv files"),
        (["flights.csv", "s3://bucket/t", "--committer", "manifest"], "manifest needs atomic file rename"),
        (
            ["flights.csv", "out", "--committer", "magic", "--mode", "overwrite-partitions", "--partition-by", "k"],
            "supports only the modes append",
        ),
        (["flights.csv", "out", "--option", "logRetention=0"], "not a whole number from 1"),
        (["flights.csv", "out", "--option", "writeId=a", "--committer", "magic"], "only two_phase records"),
        (["flights.csv", "out", "--input-option", "sep"], "an option is written as key=value"),
        (["flights.csv", "out", "--input-option", "path=b.csv"], "this option has its own parameter: use INPUT"),
        (["flights.csv", "out", "--option", "secret_key=x"], "credentials do not belong on a command line"),
        (["flights.csv", "memory://x/y"], "memory:// exists in one process only"),
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
    assert find_input_format(path) == expected


class Reader:
    """Spark's reader: option names match in any case, and the last value wins."""

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


CSV = {"format": "csv", "mode": "FAILFAST", "header": "true", "inferschema": "true", "enforceschema": "false"}
CSV |= {"escape": '"', "sep": ","}


@pytest.mark.parametrize(
    ("path", "options", "schema", "told"),
    [
        ("x.csv", {}, None, CSV),
        ("x.tsv.gz", {}, None, {**CSV, "sep": "\t"}),
        ("x.tsv", {"SEP": "|", "Header": "false"}, None, {**CSV, "sep": "|", "header": "false"}),
        ("x.csv", {}, "id long", {**CSV, "schema": "id long"}),
        ("x.csv", {"mode": "PERMISSIVE", "Escape": "\\"}, None, {**CSV, "mode": "PERMISSIVE", "escape": "\\"}),
        ("x.json", {"multiLine": "true"}, None, {"format": "json", "mode": "FAILFAST", "multiline": "true"}),
    ],
)
def test_options_of_sparks_reader(path: str, options: dict[str, str], schema: str | None, told: dict[str, str]) -> None:
    spark: Any = Reader()
    assert WriteInput(path, find_input_format(path), options, schema).load(spark) == told


@pytest.mark.parametrize("name", ["delimiter", "Delimiter"])
def test_the_separator_may_be_called_delimiter(name: str) -> None:
    """Given both names, Spark would use sep, our default."""
    spark: Any = Reader()
    found: Any = WriteInput("x.csv", "csv", {name: ";"}, None).load(spark)
    assert "sep" not in found and found["delimiter"] == ";"


def test_partition_columns_may_be_given_one_by_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stop(_source: object, request: WriteRequest, *_: object) -> None:
        assert request.options.partition_by == ("a", "b", "c")
        raise InvalidRequestError(f"partitioned by {request.strings['partitionby']}")

    monkeypatch.setattr("holdfast.cli.write._write_with_spark", stop)
    arguments = ("write", "x.csv", str(tmp_path / "out"), "--partition-by", "a", "--partition-by", "b,c")
    assert "partitioned by a,b,c" in run(*arguments).stderr


def test_option_values_may_contain_equals_signs() -> None:
    assert parse_option_pairs(["delimiter=="]) == [GivenOption.of("delimiter", "=", "--option delimiter")]
    with pytest.raises(InvalidRequestError):
        parse_option_pairs(["=x"])


def test_options_of_the_reader_keep_their_names() -> None:
    """Hadoop's settings are case-sensitive, and an underscore may be part of a bucket's name."""
    texts = ["fs.s3a.bucket.my_bucket.endpoint=http://h:1", "timestampFormat=yyyy", "fs.s3a.bucket.mybucket.endpoint=x"]
    assert parse_key_value_pairs(texts) == [tuple(text.split("=", 1)) for text in texts]


@pytest.mark.parametrize(
    "path", ["hdfs://n/a.csv", "file:/no/a.csv", "no/*.csv", "no/{a,b}.csv", "no/[ab].csv", "a\\*.csv"]
)
def test_only_spark_knows_whether_these_exist(path: str) -> None:
    WriteInput(path, "csv", {}, None).check()


def test_a_plain_path_may_be_one_of_hdfs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    WriteInput("no/a.csv", "csv", {}, None).check()
