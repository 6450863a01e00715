"""Write a DataFrame through real Spark with every committer, in each of its modes, on a disk and an S3 server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.commit import COMMITTERS, CommitContext, CommitSettings, SaveMode, open_context, recover
from holdfast.errors import DestinationExistsError, HoldfastError, InvalidRequestError
from holdfast.s3_server import SeaweedServer
from holdfast.spark.write import JobResult
from holdfast.stores.base import iter_uploads, multipart
from holdfast.stores.s3 import S3Options

pytestmark = [
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

RENAMES = {"manifest", "file-v1", "file-v2"}
HOME = [("two_phase", "s3"), ("magic", "s3"), ("manifest", "disk")]
"""What runs by default: a committer of each kind."""


@dataclass
class Table:
    """A destination of one committer."""

    spark: SparkSession
    committer: str
    url: str
    settings: CommitSettings
    options: dict[str, Any] = field(default_factory=dict)
    s3: S3Options | None = None

    def write(self, rows: DataFrame, **given: Any) -> JobResult:
        return holdfast.write(rows, self.url, committer=self.committer, **self.options, **given)

    def ids(self) -> list[int]:
        access = {name: value for name, value in self.options.items() if not name.endswith("_dir")}
        return sorted(row["id"] for row in holdfast.read(self.spark, self.url, **access).collect())

    def open(self) -> CommitContext:
        return open_context(self.url, store_options=[self.s3] if self.s3 else [], settings=self.settings, staging=True)


@pytest.fixture(scope="module", autouse=True)
def bucket(server: SeaweedServer) -> None:
    server.create_bucket("committers")


def _places(on_s3: Iterable[str]) -> list[Any]:
    """List each committer with each of its stores."""
    places = [(name, "disk") for name in COMMITTERS] + [(name, "s3") for name in on_s3]
    return [
        pytest.param(place, id="-".join(place), marks=() if place in HOME else pytest.mark.slow) for place in places
    ]


@pytest.fixture
def table(
    request: pytest.FixtureRequest, spark: SparkSession, server: SeaweedServer, tmp_path: Path
) -> Iterator[Table]:
    committer, store = request.param
    shared = str(tmp_path / "shared")
    settings = CommitSettings(shared_dir=shared, scratch_dir=str(tmp_path / "scratch"))
    options: dict[str, Any] = {"shared_dir": shared, "scratch_dir": settings.scratch_dir}
    if store == "disk":
        found = Table(spark, committer, str(tmp_path / "out put"), settings, options)
    else:
        access: dict[str, Any] = {"region": "us-east-1", "access_key": "holdfast", "secret_key": "holdfast-secret"}
        s3 = S3Options(endpoint_url=server.endpoint_url, addressing_style="path", **access)
        options |= {"endpoint": server.endpoint_url, "path_style": True, **access}
        found = Table(spark, committer, f"s3://committers/{committer}/{tmp_path.name}/out put", settings, options, s3)
    yield found
    ctx = found.open()
    try:
        assert recover(ctx).jobs == []
        if ctx.store.capabilities.multipart is not None:
            assert list(iter_uploads(multipart(ctx.store), ctx.prefix)) == []
    finally:
        ctx.close()


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 60, 1, 3).selectExpr("id", "cast(id % 3 as int) as k", "concat('v', id) as v")


@pytest.mark.parametrize("table", _places(sorted(set(COMMITTERS) - RENAMES)), indirect=True)
def test_what_was_written_is_read_back(table: Table, rows: DataFrame) -> None:
    first = table.write(rows)
    assert (first.rows, first.finished) == (60, True)
    assert first.job is not None
    assert first.files == 3
    assert table.write(rows.filter("id < 10"), partition_by=[]).rows == 10
    assert table.ids() == sorted([*range(60), *range(10)])
    access = {name: value for name, value in table.options.items() if not name.endswith("_dir")}
    found = holdfast.read(table.spark, table.url, **access).filter("id >= 10").collect()
    assert sorted((row["id"], row["k"], row["v"]) for row in found) == [(n, n % 3, f"v{n}") for n in range(10, 60)]


@pytest.mark.slow
@pytest.mark.parametrize("table", _places(["magic", "staging-partitioned"]), indirect=True)
def test_modes_of_a_partitioned_table(table: Table, rows: DataFrame) -> None:
    """Each mode takes effect at the moment that the committer's paper defines, or is refused."""
    modes = COMMITTERS[table.committer].modes
    table.write(rows, partition_by="k")
    assert table.ids() == [*range(60)]
    few = rows.filter("id < 30 and k = 1")
    if SaveMode.OVERWRITE_PARTITIONS in modes:
        assert table.write(few, mode="overwrite-partitions", partition_by="k").rows == 10
        assert table.ids() == [n for n in range(60) if n % 3 != 1 or n < 30]
    else:
        with pytest.raises(InvalidRequestError, match="supports only the modes"):
            table.write(few, mode="overwrite-partitions", partition_by="k")
    if SaveMode.IGNORE in modes:
        assert table.write(few, mode="ignore", partition_by="k").job is None
    before = table.ids()
    with pytest.raises(DestinationExistsError):
        table.write(few, mode="fail", partition_by="k")
    assert table.ids() == before
    if SaveMode.OVERWRITE in modes:
        assert table.write(few, mode="overwrite", partition_by="k").rows == 10
        assert table.ids() == [n for n in range(30) if n % 3 == 1]
    else:
        with pytest.raises(InvalidRequestError, match="supports only the modes"):
            table.write(few, mode="overwrite", partition_by="k")


def test_the_plain_way_in(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    target = str(tmp_path / "t")
    rows.write.format("holdfast").mode("append").option("committer", "file-v1").save(target)
    rows.write.format("holdfast").mode("append").option("committer", "magic").save(target)
    assert sorted(row["id"] for row in spark.read.parquet(target).collect()) == sorted([*range(60)] * 2)


def test_a_report_is_left_where_it_was_asked_for(rows: DataFrame, tmp_path: Path) -> None:
    result = holdfast.write(rows, str(tmp_path / "t"), committer="manifest", report_dir=str(tmp_path / "reports"))
    assert [path.name for path in (tmp_path / "reports").glob("*.json")] == [f"summary-{result.job}.json"]


def test_renames_are_refused_on_s3(rows: DataFrame, server: SeaweedServer) -> None:
    """Scenario 63."""
    access: dict[str, Any] = {"endpoint": server.endpoint_url, "region": "us-east-1", "path_style": True}
    keys: dict[str, Any] = {"access_key": "holdfast", "secret_key": "holdfast-secret"}
    for name in ("manifest", "file-v1", "file-v2"):
        with pytest.raises(HoldfastError, match="choose two_phase or magic"):
            holdfast.write(rows, "s3://committers/refused", committer=name, **access, **keys)
