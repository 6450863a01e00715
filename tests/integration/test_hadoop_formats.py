"""Read our manifests with Hadoop's own classes, which Spark ships, and read theirs with ours."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.commit.hadoop.manifest.format import (
    IntermediateManifest,
    ManifestFile,
    decode_intermediate_manifest,
    encode_intermediate_manifest,
)
from holdfast.commit.hadoop.uri import encode_uri
from holdfast.commit.statistics import DurationStatistics, Statistics

pytest.importorskip("pyspark.sql")

pytestmark = [
    pytest.mark.spark,
    # PySpark's own imports warn about pandas and deprecated modules; the subject here is the files.
    pytest.mark.filterwarnings("ignore"),
]

_URL = "s3://bucket/out put/a+b%20[ü] 日本"
_ATTEMPT = "_temporary/manifest_job_1/00/tasks/attempt_1"
_PATH = "year=2026/a b%+é#?{c}|^`\"\\~!$&'()*,;=@:\u3000😀.csv"
_MANIFEST = IntermediateManifest(
    job_id="job_1",
    task_id="task_1",
    task_attempt_id="attempt_1",
    task_attempt_dir=_ATTEMPT,
    files=(ManifestFile(source=f"{_ATTEMPT}/{_PATH}", dest=_PATH, size_bytes=42, etag="e1"),),
    statistics=Statistics(
        counters={"c": 1}, gauges={"g": -4}, durations={"op_rename": DurationStatistics(3, 1, 14, 2, 9)}
    ),
)


def test_hadoop_reads_our_manifest_and_we_read_what_it_makes_of_it(spark: Any) -> None:
    """Scenario 33 and scenario 58: Hadoop's reader validates what it loads; paths come out as they went in."""
    hadoop = spark._jvm.org.apache.hadoop
    serializer = hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest.serializer()
    loaded = serializer.fromJson(encode_intermediate_manifest(_MANIFEST, _URL).decode()).validate()
    file = loaded.getFilesToCommit().get(0)
    assert file.getDestPath().toUri().getPath() == f"/out put/a+b%20[ü] 日本/{_PATH}"
    assert file.getSourcePath().toUri().getPath() == f"/out put/a+b%20[ü] 日本/{_ATTEMPT}/{_PATH}"
    assert file.getDestPath().toUri().getAuthority() == "bucket"
    assert (file.getSize(), file.getEtag()) == (42, "e1")
    assert loaded.getDestDirectories().size() == 0
    assert loaded.getIOStatistics().counters().get("op_rename.failures") == 1
    data = serializer.toJson(loaded).encode()
    assert decode_intermediate_manifest("a manifest", data, url=_URL, job_id="job_1") == _MANIFEST


def test_hadoop_makes_the_same_uri_of_a_path(spark: Any) -> None:
    """The same text finds a path in Hadoop's records and in ours."""
    hadoop = spark._jvm.org.apache.hadoop
    files = hadoop.mapreduce.lib.output.committer.manifest.files
    path = hadoop.fs.Path("s3a", "bucket", f"/out put/a+b%20[ü] 日本/{_PATH}")
    assert files.AbstractManifestData.marshallPath(path) == encode_uri(_URL, _PATH)
