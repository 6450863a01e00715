"""Options of a batch write: names in any case, save modes, and a format that is parsed once."""

from __future__ import annotations

import pickle

import pytest

pytest.importorskip("pyspark")

from holdfast.commit import SaveMode
from holdfast.errors import InvalidRequestError
from holdfast.options.write import parse_write_options
from holdfast.stores.s3.options import S3Options


def test_defaults() -> None:
    options = parse_write_options({"path": "out"}, overwrite=False)
    assert (options.format.name, options.committer, options.mode) == ("parquet", "two_phase", SaveMode.APPEND)
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
    assert options.format.name == "csv"
    assert options.partition_by == ("a", "b,`c")
    assert (options.max_records_per_file, options.target_file_size_bytes) == (10, 128 * 1024 * 1024)
    assert options.settings.part_size_bytes == 16 * 1024 * 1024
    assert (options.settings.log_retention_entries, options.settings.allow_unfenced) == (50, True)
    assert options.store.store_options == (S3Options(addressing_style="path"),)
    assert options.store.threads == 4
    assert options.format.strings == {"sep": ";"}
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


def test_unknown_options_are_shown_as_the_documentation_spells_them() -> None:
    with pytest.raises(InvalidRequestError, match="did you mean partitionBy"):
        parse_write_options({"path": "out", "partionby": "a"}, overwrite=False)
    with pytest.raises(InvalidRequestError, match="unknown option"):
        parse_write_options({"path": "out", "header": "true"}, overwrite=False)  # parquet has none


@pytest.mark.parametrize(("name", "meant"), [("user", "namespaceUser"), ("Database", "namespaceDatabase")])
def test_the_end_of_a_name_means_that_name(name: str, meant: str) -> None:
    """Defect: user was taken for sep, an option of CSV files."""
    with pytest.raises(InvalidRequestError, match=f"unknown option: did you mean {meant}"):
        parse_write_options({"path": "holdfast://lake/t", name: "bob"}, overwrite=False)
