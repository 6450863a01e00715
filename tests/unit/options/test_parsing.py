"""Option strings into values, or one sentence."""

from __future__ import annotations

import pickle

import pytest

pytest.importorskip("pyspark")

from holdfast.commit import SaveMode
from holdfast.errors import InvalidRequestError
from holdfast.options.conditions import Condition
from holdfast.options.parsing import (
    parse_read_options,
    parse_write_options,
)
from holdfast.options.said import joined_columns
from holdfast.stores.s3.options import S3Options

SECRETS = {"accessKey": "canary-a", "secretKey": "canary-b", "sessionToken": "canary-c"}


def test_defaults() -> None:
    options = parse_write_options({"path": "out"}, overwrite=False)
    assert (options.file_format, options.committer, options.mode) == ("parquet", "two_phase", SaveMode.APPEND)
    assert (options.partition_by, options.max_records_per_file, options.target_file_size_bytes) == ((), None, None)


def test_names_are_taken_in_any_case_and_values_once() -> None:
    """facts: faults 95."""
    options = parse_write_options(
        {
            "PATH": "s3://bucket/a b",
            "fileformat": "CSV",
            "PartitionBY": "a, `b,``c`",
            "maxrecordsperfile": "10",
            "targetFileSize": "128m",
            "partsize": "16MiB",
            "LOGRETENTION": "50",
            "allowUnfenced": "True",
            "Sep": ";",
            "pathStyle": "true",
            "threads": "4",
        },
        overwrite=False,
    )
    assert options.file_format == "csv"
    assert options.partition_by == ("a", "b,`c")
    assert (options.max_records_per_file, options.target_file_size_bytes) == (10, 128 * 1024 * 1024)
    assert options.settings.part_size_bytes == 16 * 1024 * 1024
    assert (options.settings.log_retention_entries, options.settings.allow_unfenced) == (50, True)
    assert options.store.store_options == (S3Options(addressing_style="path"),)
    assert options.store.threads == 4
    assert options.format_strings == {"sep": ";"}
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("given", "overwrite", "mode"),
    [
        ({}, True, SaveMode.OVERWRITE),
        ({"partitionOverwriteMode": "static"}, True, SaveMode.OVERWRITE),
        ({"partitionOverwriteMode": "DYNAMIC", "partitionBy": "a"}, True, SaveMode.OVERWRITE_PARTITIONS),
        ({"partitionOverwriteMode": "static"}, False, SaveMode.APPEND),
        ({"ifExists": "append"}, False, SaveMode.APPEND),
        ({"ifExists": "Fail"}, False, SaveMode.FAIL),
        ({"ifExists": "ignore"}, False, SaveMode.IGNORE),
    ],
)
def test_save_modes(given: dict[str, str], overwrite: bool, mode: SaveMode) -> None:
    assert parse_write_options({"path": "out", **given}, overwrite).mode is mode


@pytest.mark.parametrize("size", ["", "m", "-1", "1.5g", "12parsecs", "1 x", "0", "9" * 30])
def test_a_size_is_refused(size: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a size"):
        parse_write_options({"path": "out", "targetFileSize": size}, overwrite=False)


@pytest.mark.parametrize(("size", "count"), [("7", 7), ("1k", 1024), ("2 MB", 2 << 20), ("3gib", 3 << 30), ("5B", 5)])
def test_a_size_is_understood(size: str, count: int) -> None:
    assert parse_write_options({"path": "out", "targetFileSize": size}, overwrite=False).target_file_size_bytes == count


@pytest.mark.parametrize("text", ["", ",", "a,,b", "`a", "a`b", "``", "a,"])
def test_a_list_of_columns_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a list of column names"):
        parse_write_options({"path": "out", "partitionBy": text}, overwrite=False)


@pytest.mark.parametrize("names", [("a",), ("a b", "c"), ("a,b",), ("`",), ("a`,`b", " x "), ("é\n",)])
def test_any_column_names_make_the_round_trip(names: tuple[str, ...]) -> None:
    given = {"path": "out", "partitionBy": joined_columns(names)}
    assert parse_write_options(given, overwrite=False).partition_by == names


def test_unknown_options_are_shown_as_the_documentation_spells_them() -> None:
    with pytest.raises(InvalidRequestError, match="did you mean partitionBy"):
        parse_write_options({"path": "out", "partionby": "a"}, overwrite=False)
    with pytest.raises(InvalidRequestError, match="unknown option"):
        parse_write_options({"path": "out", "header": "true"}, overwrite=False)  # parquet has none


@pytest.mark.parametrize("url", ["", "  ", "memory://x", "MEMORY://x"])
def test_destinations_that_spark_cannot_use(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_write_options({"path": url}, overwrite=False)
    with pytest.raises(InvalidRequestError, match="no destination was given"):
        parse_read_options({})
    with pytest.raises(InvalidRequestError, match="one read has one path"):
        parse_read_options({"path": "a", "paths": '["a", "b"]'})


def test_secrets_are_not_shown() -> None:
    """facts: faults 86."""
    options = parse_write_options({"path": "s3://bucket/x", **SECRETS}, overwrite=False)
    (s3,) = options.store.store_options
    assert isinstance(s3, S3Options) and s3.secret_key == "canary-b"
    assert "canary" not in repr(options)
    with pytest.raises(InvalidRequestError) as caught:
        parse_write_options({"path": "s3://bucket/x", "secretKey": "canary", "threads": "x"}, overwrite=False)
    assert "canary" not in str(caught.value) + repr(caught.value)


def test_read_options() -> None:
    given = {"path": "in", "columns": "b,a", "filters": '[["a", "in", [1, 2]]]', "splitSize": "1m", "header": "true"}
    options = parse_read_options(given)
    assert (options.columns, options.split_size_bytes) == (("b", "a"), 1 << 20)
    assert options.conditions == (Condition("a", "in", (1, 2)),)
    assert options.format_options == {"header": "true"}
    with pytest.raises(InvalidRequestError, match="unknown option"):
        parse_read_options({**given, "fileFormat": "parquet"})


@pytest.mark.parametrize("text", ["", "{}x", "[1]", '[["a", "="]]', '[["a", "=", [1]]]', '[["a", "in", 1]]', "3"])
def test_conditions_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_read_options({"path": "in", "filters": text})
