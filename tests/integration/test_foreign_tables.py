"""Leave directories of other table formats alone: no file there changes, and Holdfast adds none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli.read_rows import read_first_rows
from holdfast.commit import open_context
from holdfast.errors import InvalidRequestError
from holdfast.options.read import parse_read_options
from tests.variants import variants

pytestmark = pytest.mark.spark

RECORDS = {
    "Delta": "_delta_log/00000000000000000000.json",
    "Hudi": ".hoodie/hoodie.properties",
    "Iceberg": "metadata/v1.metadata.json",
}


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", variants(RECORDS))
def test_nothing_is_written_and_nothing_read(spark: Any, tmp_path: Path, kind: str) -> None:
    root = tmp_path / "t"
    frame = spark.range(4).selectExpr("id", "id % 2 as k")
    frame.coalesce(1).write.partitionBy("k").parquet(str(root))
    record = root / RECORDS[kind]
    record.parent.mkdir()
    record.write_text("{}")
    before = files(root)
    for mode in ("append", "overwrite", "overwrite-partitions"):
        with pytest.raises(InvalidRequestError, match=f"{kind}'s own writer"):
            holdfast.write(frame, str(root), mode=mode, partition_by="k")
    with pytest.raises(InvalidRequestError, match=f"{kind}'s own writer"):
        holdfast.write(frame.drop("k"), str(root / "k=1"), mode="overwrite")
    with pytest.raises(InvalidRequestError, match=f"{kind}'s own writer"), holdfast.job(spark, str(root)):
        pass
    for reader in ("auto", "native", "python"):
        with pytest.raises(InvalidRequestError, match=f"read it with {kind}'s own reader"):
            holdfast.read(spark, str(root), reader=reader)
    ctx = open_context(str(root))
    with pytest.raises(InvalidRequestError, match=f"read it with {kind}'s own reader"):
        read_first_rows(ctx, parse_read_options({"path": str(root)}), 1)
    ctx.close()
    assert files(root) == before


def test_a_table_of_ours_that_was_made_one_of_deltas_is_deltas(spark: Any, tmp_path: Path) -> None:
    """CONVERT TO DELTA leaves the files where they are."""
    url = str(tmp_path / "t")
    holdfast.write(spark.range(3), url)
    (tmp_path / "t" / "_delta_log").mkdir()
    (tmp_path / "t" / "_delta_log" / "00000000000000000000.json").write_text("{}")
    before = files(tmp_path)
    with pytest.raises(InvalidRequestError, match="Delta's own writer"):
        holdfast.write(spark.range(3), url)
    assert files(tmp_path) == before


def test_the_output_of_a_file_stream_is_spark_own(spark: Any, tmp_path: Path) -> None:
    """Spark reads only the files in the stream's log: it would ignore ours, and we would read too many."""
    source, url = str(tmp_path / "in"), str(tmp_path / "t")
    spark.range(3).write.parquet(source)
    query = spark.readStream.schema("id long").parquet(source).writeStream.format("parquet")
    query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(url).awaitTermination()
    spark.range(9).write.mode("append").parquet(source + "-stray")
    for stray in (tmp_path / "in-stray").glob("part-*.parquet"):
        (tmp_path / "t" / stray.name).write_bytes(stray.read_bytes())  # as left by an attempt that died
    with pytest.raises(InvalidRequestError, match="Spark's own writer"):
        holdfast.write(spark.range(3), url)
    with pytest.raises(InvalidRequestError, match="Spark's own reader"):
        holdfast.read(spark, url)
