"""Write to a real S3 server with Spark; other readers return the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pytest

pytest.importorskip("pyspark.sql")

from pyspark.sql import DataFrame, SparkSession

import holdfast
from holdfast.commit import open_context, verify
from holdfast.errors import AccessDeniedError, InvalidRequestError, NotFoundError
from holdfast.s3_server import SeaweedServer
from tests.integration.spark_session import assert_clean
from tests.servers.tls import Authority, TlsFront

pytestmark = [
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own imports warn; the subject here is the files
]

SECRET = "holdfast-secret"


@pytest.fixture(scope="module", autouse=True)
def bucket(server: SeaweedServer) -> None:
    server.create_bucket("spark")


@pytest.fixture
def access(server: SeaweedServer) -> dict[str, Any]:
    return {
        "endpoint": server.endpoint_url,
        "region": "us-east-1",
        "access_key": "holdfast",
        "secret_key": SECRET,
        "path_style": True,
    }


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 300, 1, 3).selectExpr("id", "cast(id % 3 as int) as k", "concat('v ', id % 2) as `o d`")


def test_modes_and_partitions(spark: SparkSession, server: SeaweedServer, access: dict[str, Any]) -> None:
    url = "s3://spark/a b/ünï+%20=/t"
    first = holdfast.write(rows(spark), url, partition_by=["k", "o d"], **access)
    assert (first.rows, first.finished) == (300, True)
    holdfast.write(
        rows(spark).filter("k = 1 and id < 30"), url, mode="overwrite-partitions", partition_by=["k", "o d"], **access
    )
    expected = [i for i in range(300) if i % 3 != 1 or i < 30]
    assert sorted(row["id"] for row in holdfast.read(spark, url, **access).collect()) == expected
    found = holdfast.read(spark, url, filters=[("k", "=", 2), ("o d", "=", "v 1")], **access)
    assert sorted(row["id"] for row in found.collect()) == [i for i in range(300) if i % 3 == 2 and i % 2 == 1]
    assert holdfast.write(rows(spark), url, mode="ignore", **access).job is None
    assert_clean(url, store_options=[server.options])
    holdfast.write(rows(spark).limit(3), url, mode="overwrite", **access)
    assert holdfast.read(spark, url, **access).count() == 3
    assert_clean(url, store_options=[server.options])


def test_pyarrow_and_pandas_read_the_same(spark: SparkSession, server: SeaweedServer, access: dict[str, Any]) -> None:
    url = "s3a://spark/plain/t"
    holdfast.write(rows(spark), url, partition_by="k", **access)
    files = pafs.S3FileSystem(
        access_key="holdfast",
        secret_key=SECRET,
        endpoint_override=server.endpoint_url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
    )
    found = ds.dataset("spark/plain/t", filesystem=files, format="parquet", partitioning="hive").to_table()
    expected = sorted((row["id"], row["k"], row["o d"]) for row in rows(spark).collect())
    frame = found.to_pandas()
    assert sorted(zip(frame["id"], frame["k"], frame["o d"], strict=True)) == expected


def test_duckdb_reads_the_same(spark: SparkSession, server: SeaweedServer, access: dict[str, Any]) -> None:
    """DuckDB's S3 client and Parquet reader share no code with ours or Spark's."""
    import duckdb
    import duckdb_extension_httpfs

    folder = Path(duckdb_extension_httpfs.__file__).parent / "extensions" / f"v{duckdb.__version__}"
    extension = folder / "httpfs.duckdb_extension"
    if not extension.exists():
        pytest.skip(f"duckdb-extension-httpfs holds no file for this platform and DuckDB: {extension}")
    url = "s3://spark/duck db/t"
    holdfast.write(rows(spark), url, partition_by=["k", "o d"], **access)
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID 'holdfast', SECRET '{SECRET}', REGION 'us-east-1', URL_STYLE 'path', "
            f"ENDPOINT '{server.endpoint_url.removeprefix('http://')}', USE_SSL false)"
        )
        found = connection.execute(
            f"SELECT id, k, \"o d\" FROM read_parquet('{url}/*/*/*.parquet', hive_partitioning=true)"
        ).fetchall()
    assert sorted(found) == sorted((row["id"], row["k"], row["o d"]) for row in rows(spark).collect())


def test_a_failed_job_leaves_no_upload(spark: SparkSession, server: SeaweedServer, access: dict[str, Any]) -> None:
    url = "s3://spark/failed/t"
    bad = rows(spark).selectExpr("id", "if(id = 299, raise_error('injected'), id) as x")
    with pytest.raises(Exception, match="injected"):
        holdfast.write(bad, url, **access)
    ctx = open_context(url, store_options=[server.options])
    report = verify(ctx)
    ctx.store.close()
    assert (report.problems, report.pending_uploads, report.totals.files) == ([], 0, 0)


def test_what_is_wrong_with_the_store_is_said_in_a_sentence(spark: SparkSession, access: dict[str, Any]) -> None:
    with pytest.raises(AccessDeniedError) as caught:
        holdfast.write(rows(spark), "s3://spark/x", **{**access, "secret_key": "canary-wrong"})
    assert "canary" not in str(caught.value)
    with pytest.raises(NotFoundError):
        holdfast.write(rows(spark), "s3://no-such-bucket/x", **access)


@pytest.mark.slow
def test_a_ca_bundle_reaches_the_tasks(
    spark: SparkSession, server: SeaweedServer, access: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks do not get the driver's environment, but they get the option, for writes and for reads."""
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    authority = Authority(tmp_path)
    with TlsFront(server.endpoint_url, *authority.issue("127.0.0.1")) as front:
        secured = {**access, "endpoint": front.url}
        with pytest.raises(InvalidRequestError, match="certificate is not accepted"):
            holdfast.write(rows(spark), "s3://spark/tls/t", **secured)
        secured["ca_bundle"] = authority.bundle
        assert holdfast.write(rows(spark), "s3://spark/tls/t", **secured).rows == 300
        found = holdfast.read(spark, "s3://spark/tls/t", reader="python", **secured)
        assert found.count() == 300
        assert found.rdd.getNumPartitions() >= 1
    assert_clean("s3://spark/tls/t", store_options=[server.options])
