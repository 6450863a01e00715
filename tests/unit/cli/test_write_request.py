"""`write` refuses a request that cannot be right before it starts Spark, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.arguments import parse_options
from holdfast.cli.write import _format_of
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
            "knows only the modes append",
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


def test_options_may_hold_equals_signs() -> None:
    assert parse_options(["delimiter=="], reserved={}) == {"delimiter": "="}
    with pytest.raises(InvalidRequestError):
        parse_options(["=x"], reserved={})
