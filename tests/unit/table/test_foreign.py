"""Directories of Delta, Iceberg, Hudi and Spark's file streams: their own records say which files count."""

from __future__ import annotations

import pytest

from holdfast.commit import CommitContext
from holdfast.errors import InvalidRequestError
from holdfast.stores.base import Overwrite
from holdfast.stores.memory import MemoryStore
from holdfast.table.foreign import refuse_foreign_read, refuse_foreign_write

FOREIGN = [
    ("_delta_log/00000000000000000000.json", "a Delta table"),
    (".hoodie/hoodie.properties", "a Hudi table"),
    ("metadata/v1.metadata.json", "an Iceberg table"),
    ("metadata/00000-5a8f.metadata.json", "an Iceberg table"),
    ("metadata/00000-5a8f.gz.metadata.json", "an Iceberg table"),
    ("metadata/00000-5a8f.metadata.json.gz", "an Iceberg table"),
    ("metadata/version-hint.text", "an Iceberg table"),
    ("_spark_metadata/0", "the output of a Spark file stream"),
]


def at(prefix: str, *keys: str) -> CommitContext:
    store = MemoryStore()
    for key in keys:
        store.put(key, b"x", Overwrite())
    return CommitContext(store=store, prefix=prefix, url=f"memory://x/{prefix}")


@pytest.mark.parametrize(("record", "what"), FOREIGN)
def test_a_foreign_table_is_neither_written_nor_read(record: str, what: str) -> None:
    ctx = at("lake/t/", f"lake/t/{record}", "lake/t/data/part-0.parquet")
    with pytest.raises(InvalidRequestError, match=f"the destination is or lies in {what}, which would not know"):
        refuse_foreign_write(ctx)
    with pytest.raises(InvalidRequestError, match=f"this is {what}, whose directory may also hold"):
        refuse_foreign_read(ctx)


@pytest.mark.parametrize("inside", ["month=1/", "data/", "a/b/c/"])
@pytest.mark.parametrize(("record", "what"), FOREIGN)
def test_nor_is_a_directory_of_one_written(record: str, what: str, inside: str) -> None:
    with pytest.raises(InvalidRequestError, match=what):
        refuse_foreign_write(at(f"lake/t/{inside}", f"lake/t/{record}"))


def test_a_bucket_may_be_one() -> None:
    for prefix in ("", "month=1/"):
        with pytest.raises(InvalidRequestError, match="a Delta table"):
            refuse_foreign_write(at(prefix, "_delta_log/00000000000000000000.json"))


def test_spark_reads_what_its_own_streams_wrote() -> None:
    refuse_foreign_read(at("t/", "t/_spark_metadata/0"), by_spark=True)
    with pytest.raises(InvalidRequestError, match="Delta"):
        refuse_foreign_read(at("t/", "t/_delta_log/0.json"), by_spark=True)


@pytest.mark.parametrize(
    "key",
    [
        "t/part-0.parquet",
        "t/metadata/part-0.parquet",
        "t/metadata/notes.json",
        "t2/_delta_log/0.json",
        "t/old/_delta_log/0.json",
        "_delta_log_of_another/0.json",
        "t/_holdfast/log/00000000000000000001.json",
    ],
)
def test_what_only_looks_like_one_is_left_alone(key: str) -> None:
    ctx = at("t/", key)
    refuse_foreign_write(ctx)
    refuse_foreign_read(ctx)


def test_a_folder_that_the_tables_own_tools_skip_may_hold_a_destination() -> None:
    refuse_foreign_write(at("t/_mine/x/", "t/_delta_log/0.json"))
