"""What a write's request becomes before it has looked at its table, and where it need not look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql.types import ArrayType, LongType, MapType, StructField, StructType

from holdfast.commit.two_phase.decision_log import read_log
from holdfast.commit.two_phase.write_ids import WRITE_ID
from holdfast.commit.write_lookup import TOKEN
from holdfast.errors import InvalidRequestError
from holdfast.options.write import parse_write_options
from holdfast.spark.table_job import TableJob
from holdfast.spark.types import without_foreign_metadata

ROWS = StructType([StructField("id", LongType())])


def test_the_decision_holds_the_writes_name_and_its_calls_token() -> None:
    """By them a repeated write and a call whose reply was lost find their job."""
    given = {"path": "/data", "writeId": "nightly", "writeToken": "00000000000a"}
    named = TableJob.of(parse_write_options(given, overwrite=False), ROWS)
    assert named.details == {WRITE_ID: "nightly", TOKEN: "00000000000a"}
    assert TableJob.of(parse_write_options({"path": "/data"}, overwrite=False), ROWS).details == {}


def test_what_other_tables_note_at_their_columns_is_left_out_at_any_depth() -> None:
    notes = {"CURRENT_DEFAULT": "1", "__CHAR_VARCHAR_TYPE_STRING": "char(3)", "comment": "ours", "a__b": 1}

    def rows(metadata: dict[str, Any]) -> StructType:
        inner = StructType([StructField("x", LongType(), metadata=metadata)])
        kinds = [inner, ArrayType(inner), MapType(inner, LongType()), MapType(LongType(), ArrayType(inner, False))]
        return StructType(
            [StructField(f"c{index}", kind, index > 1, metadata) for index, kind in enumerate((LongType(), *kinds))]
        )

    assert without_foreign_metadata(rows(notes)) == rows({"comment": "ours", "a__b": 1})


def test_an_overwrite_may_change_everything(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1" / "theirs.csv").write_text("a,b\n")
    for overwrite in (True, False):
        table = TableJob.of(parse_write_options({"path": str(tmp_path)}, overwrite=overwrite), ROWS)
        with table.opened() as ctx:
            if overwrite:
                assert table.fitted(ctx, read_log(ctx)) == table
            else:
                with pytest.raises(InvalidRequestError, match="another file format"):
                    table.fitted(ctx, read_log(ctx))
