"""Read from S3 through Spark's own reader and Hadoop's S3A, which stock PySpark does not ship.

The jars come from ``HOLDFAST_S3A_JARS``, a directory with hadoop-aws and what it needs;
docs/how-to/read-with-s3a.md says how to fill it.
"""

from __future__ import annotations

import itertools
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

import holdfast
from holdfast.errors import NotFoundError, UnsupportedError
from holdfast.s3_server import SeaweedServer
from tests.integration.dying_jobs import dying_overwrite
from tests.integration.spark_session import spark_session

JARS = sorted(map(str, Path(os.environ.get("HOLDFAST_S3A_JARS", "/nowhere")).glob("*.jar")))

pytestmark = [
    pytest.mark.spark,
    pytest.mark.s3,
    pytest.mark.slow,
    pytest.mark.skipif(not JARS, reason="no hadoop-aws in HOLDFAST_S3A_JARS: docs/how-to/read-with-s3a.md"),
]

BUCKETS = ("s3a", "s3a-other", "s3a-nokeys", "s3a-wrongkeys", "s3a-refused", "s3a-silent", "s3a-settings")
SECRET = "holdfast-secret"


class DeafServer:
    """A server that counts connections and closes them at once, or never answers."""

    def __init__(self, *, closes: bool) -> None:
        self.connections: list[socket.socket] = []
        self._closes = closes
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                found, _ = self._socket.accept()
            except OSError:
                return
            self.connections.append(found)
            if self._closes:
                found.close()

    def close(self) -> None:
        self._socket.close()
        for each in self.connections:
            each.close()


@pytest.fixture(scope="module")
def deaf() -> Iterator[dict[str, DeafServer]]:
    found = {"s3a-refused": DeafServer(closes=True), "s3a-silent": DeafServer(closes=False)}
    yield found
    for each in found.values():
        each.close()


@pytest.fixture(scope="module")
def other() -> Iterator[SeaweedServer]:
    with SeaweedServer() as running:
        yield running


@pytest.fixture(scope="module")
def spark(server: SeaweedServer, other: SeaweedServer, deaf: dict[str, DeafServer]) -> Iterator[Any]:
    """Start Spark with its keys in its own settings and ours in the environment; no read gets keys."""
    for bucket in BUCKETS:
        server.create_bucket(bucket)
    other.create_bucket("s3a-other")
    settings = {
        "endpoint": server.endpoint_url,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": "holdfast",
        "secret.key": SECRET,
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "bucket.s3a-other.endpoint": other.endpoint_url,
        "bucket.s3a-nokeys.aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
        "bucket.s3a-wrongkeys.access.key": "nobody",
        "bucket.s3a-settings.connection.maximum": "many",
        **{f"bucket.{bucket}.endpoint": each.url for bucket, each in deaf.items()},
    }
    paths = os.pathsep.join(JARS)
    keys = {"AWS_ACCESS_KEY_ID": "holdfast", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**keys, "AWS_ENDPOINT_URL": server.endpoint_url}.items():
            patch.setenv(name, value)
        with spark_session(
            **{f"spark.hadoop.fs.s3a.{name}": value for name, value in settings.items()},
            **{"spark.driver.extraClassPath": paths, "spark.executor.extraClassPath": paths},
        ) as session:
            yield session


def rows(frame: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in frame.collect())


def is_native(frame: Any) -> bool:
    return "FileScan" in frame._jdf.queryExecution().toString()


def same_by_both(spark: Any, url: str, **options: Any) -> list[str]:
    """Check that both readers agree, and return the rows."""
    native, python, auto = (holdfast.read(spark, url, reader=one, **options) for one in ("native", "python", "auto"))
    assert (is_native(native), is_native(python), is_native(auto)) == (True, False, True)
    assert native.schema == python.schema
    assert rows(native) == rows(python)
    return rows(native)


NAMES = ["plain", "a b/c", "p%20c%", "x{1,2}", "st*r[a]", "ü#+=&", "k=1 +/é"]


@pytest.mark.parametrize(("scheme", "name"), [*(("s3", name) for name in NAMES), ("s3a", "a b"), ("s3n", "a b")])
def test_a_path_is_a_path(spark: Any, scheme: str, name: str) -> None:
    url = f"{scheme}://s3a/paths/{scheme}/{name}/t"
    holdfast.write(spark.range(6).selectExpr("id", "concat('p{*} %+=ü/:', id % 2) as k"), url, partition_by="k")
    assert len(same_by_both(spark, url)) == 6


def test_columns_and_types(spark: Any) -> None:
    url = "s3://s3a/types"
    frame = spark.sql(
        "select id, timestamp '2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) as t, date '2026-01-01' as d, "
        "cast(id as decimal(10, 2)) as p, if(id = 1, null, named_struct('a', id)) as s, id % 3 as k from range(9)"
    )
    holdfast.write(frame, url, partition_by="k")
    assert len(same_by_both(spark, url)) == 9
    assert same_by_both(spark, url, columns=["id"])[:2] == ["(0,)", "(1,)"]
    holdfast.write(spark.sql("select 9L as id, 'new' as n, 7L as k"), url, partition_by="k", merge_schema=True)
    assert len(same_by_both(spark, url)) == 10
    for form in ("orc", "json", "text"):
        other = f"s3://s3a/formats/{form}"
        holdfast.write(spark.sql("select concat('v ', id) as value from range(5)"), other, file_format=form)
        assert len(same_by_both(spark, other)) == 5


def test_directory_markers_of_s3a_and_files_of_others(spark: Any) -> None:
    """S3A writes ``x/`` for an empty directory, and a partition's marker beside its files."""
    url, s3a = "s3://s3a/markers/t", "s3a://s3a/markers/t"
    spark.range(4).selectExpr("id", "id % 2 as k").write.partitionBy("k").parquet(s3a)
    path = spark._jvm.org.apache.hadoop.fs.Path
    files = path(s3a).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    for made in ("k=7", "k=0/empty", "_holdfast/log", "_holdfast/jobs"):
        assert files.mkdirs(path(f"{s3a}/{made}"))
    client = boto3.client("s3")
    for key in ("markers/t/k=0/", "markers/t/"):
        client.put_object(Bucket="s3a", Key=key, Body=b"")
    assert len(same_by_both(spark, url)) == 4
    holdfast.write(spark.range(4, 6).selectExpr("id", "id % 2 as k"), url, partition_by="k")
    assert len(same_by_both(spark, url)) == 6
    holdfast.write(spark.range(2).selectExpr("id", "id % 2 as k"), url, partition_by="k", mode="overwrite")
    assert same_by_both(spark, url) == ["(0, 0)", "(1, 1)"]
    assert spark.read.parquet(s3a).count() == 2
    with pytest.raises(NotFoundError):
        holdfast.read(spark, "s3://s3a/markers/nothing")


def test_a_job_is_seen_whole_or_not_at_all_at_every_call_of_its_commit(spark: Any) -> None:
    """C4, with S3A's listing."""
    old, new = spark.range(2).selectExpr("id", "id as k"), spark.range(10, 13).selectExpr("id", "id % 2 as k")
    seen, mixed = [], 0
    for nth in itertools.count(1):
        url = f"s3://s3a/crash/t{nth}"
        holdfast.write(old, url, partition_by="k")
        ended = dying_overwrite(new, url, nth)
        found = holdfast.read(spark, url, reader="native")
        assert is_native(found)
        assert rows(found) in (rows(old), rows(new))
        seen.append(rows(found) == rows(new))
        mixed += spark.read.parquet(url.replace("s3:", "s3a:")).count() not in (2, 3)
        if ended:
            break
    assert seen == sorted(seen) and not seen[0] and seen[-1]
    assert mixed, "a plain reader did see half a job: the test can fail"


@pytest.mark.parametrize(
    ("bucket", "reason"),
    [
        ("s3a-nokeys", "its keys are missing or rejected"),
        ("s3a-wrongkeys", "its keys are missing or rejected"),
        ("s3a-settings", "its settings are wrong"),
        ("s3a-refused", "its endpoint does not answer"),
        ("s3a-silent", "its endpoint does not answer"),
    ],
)
def test_where_spark_cannot_open_it_python_does_at_once(
    spark: Any, deaf: dict[str, DeafServer], bucket: str, reason: str
) -> None:
    """S3A alone retries an unanswered request for two minutes."""
    url = f"s3://{bucket}/t"
    holdfast.write(spark.range(3), url)
    found = holdfast.read(spark, url)
    assert (is_native(found), found.count()) == (False, 3)
    if bucket in deaf:
        assert 1 <= len(deaf[bucket].connections) <= 4, "S3A by itself repeats for two minutes"
    with pytest.raises(UnsupportedError, match=f"Spark's own reader cannot read this: .*{reason}"):
        holdfast.read(spark, url, reader="native")


def test_another_server_with_the_same_names_is_another_place(
    spark: Any, server: SeaweedServer, other: SeaweedServer
) -> None:
    """Spark's endpoint for the bucket is another server, with a table of the same name."""
    url = "s3://s3a-other/t"
    access = {"endpoint": other.endpoint_url, "access_key": "holdfast", "secret_key": SECRET, "path_style": True}
    for start in (0, 10):
        holdfast.write(spark.range(start, start + 3), url)
        holdfast.write(spark.range(100, 101), url, **access)
    found = holdfast.read(spark, url)
    assert (is_native(found), found.count()) == (False, 6)
    with pytest.raises(UnsupportedError, match="does not see the destination"):
        holdfast.read(spark, url, reader="native")
    _plain(server, b"v 1\nv 2\n")
    _plain(other, b"v 1\n")
    found = holdfast.read(spark, "s3://s3a-other/plain")
    assert (is_native(found), found.count()) == (False, 2)


def _plain(server: SeaweedServer, data: bytes) -> None:
    keys = {"aws_access_key_id": "holdfast", "aws_secret_access_key": SECRET}
    client = boto3.client("s3", endpoint_url=server.endpoint_url, region_name="us-east-1", **keys)
    client.put_object(Bucket="s3a-other", Key="plain/x.txt", Body=data)
    client.close()


def test_keys_of_one_read_are_not_sparks(spark: Any, server: SeaweedServer) -> None:
    url = "s3://s3a/own"
    access = {"endpoint": server.endpoint_url, "access_key": "holdfast", "secret_key": SECRET, "path_style": True}
    holdfast.write(spark.range(3), url, **access)
    found = holdfast.read(spark, url, **access)
    assert (is_native(found), found.count()) == (False, 3)
    with pytest.raises(UnsupportedError, match="are given to this read only") as caught:
        holdfast.read(spark, url, reader="native", **access)
    assert SECRET not in str(caught.value)
