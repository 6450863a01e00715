"""Test the manifest committer's record: Hadoop's own files, round trips, and every check of the decoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.commit.hadoop.manifest.format import (
    MAX_MANIFEST_BYTES,
    IntermediateManifest,
    ManifestFile,
    decode_intermediate_manifest,
    encode_intermediate_manifest,
    job_dir,
)
from holdfast.commit.statistics import DurationStatistics, Statistics
from holdfast.errors import CorruptDataError
from tests.unit.commit.statistics_values import statistics

_URL = "file:///data/out put"
_KEY = "data/out put/_temporary/manifest_job_1/00/manifests/task_1-manifest.json"
_ATTEMPT = "_temporary/manifest_job_1/00/tasks/attempt_1"

# What Hadoop 3.5.0 writes for such a manifest, with fields that a later version might add.
_GOLDEN = """{
  "extraData" : {
    "k" : "v"
  },
  "type" : "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1",
  "version" : 1,
  "jobId" : "job_1",
  "jobAttemptNumber" : 0,
  "taskID" : "task_1",
  "taskAttemptID" : "attempt_1",
  "taskAttemptDir" : "file:/data/out%20put/_temporary/manifest_job_1/00/tasks/attempt_1",
  "files" : [ {
    "s" : "file:/data/out%20put/_temporary/manifest_job_1/00/tasks/attempt_1/year=2026/a%20b%25+é%23c.csv",
    "d" : "file:/data/out%20put/year=2026/a%20b%25+é%23c.csv",
    "z" : 42,
    "e" : "e1"
  }, {
    "s" : "file:/data/out%20put/_temporary/manifest_job_1/00/tasks/attempt_1/x",
    "d" : "file:/data/out%20put/x",
    "z" : 0
  } ],
  "directories" : [ {
    "d" : "file:/data/out%20put/year=2026",
    "t" : 1,
    "l" : 1
  } ],
  "iostatistics" : {
    "counters" : {
      "op_list_status" : 2,
      "op_list_status.failures" : 0
    },
    "gauges" : {
      "g" : 4
    },
    "minimums" : {
      "op_list_status.min" : 5
    },
    "maximums" : {
      "op_list_status.max" : 9
    },
    "meanstatistics" : {
      "op_list_status.mean" : {
        "samples" : 2,
        "sum" : 14
      }
    }
  },
  "fromTheFuture" : { "a" : [ ] }
}"""

_MANIFEST = IntermediateManifest(
    job_id="job_1",
    task_id="task_1",
    task_attempt_id="attempt_1",
    task_attempt_dir=_ATTEMPT,
    files=(
        ManifestFile(
            source=f"{_ATTEMPT}/year=2026/a b%+é#c.csv", dest="year=2026/a b%+é#c.csv", size_bytes=42, etag="e1"
        ),
        ManifestFile(source=f"{_ATTEMPT}/x", dest="x", size_bytes=0),
    ),
    statistics=Statistics(gauges={"g": 4}, durations={"op_list_status": DurationStatistics(2, 0, 14, 5, 9)}),
)

_Change = Callable[[dict[str, Any]], object]


def _decode(data: bytes, url: str = _URL) -> IntermediateManifest:
    return decode_intermediate_manifest(_KEY, data, url=url, job_id="job_1")


def test_what_hadoop_wrote_is_read() -> None:
    """Scenario 33: the destination and a file have spaces, the file a percent sign, a plus, an accent and a hash."""
    assert _decode(_GOLDEN.encode()) == _MANIFEST


def test_ours_is_what_hadoop_writes() -> None:
    golden = json.loads(_GOLDEN)
    del golden["fromTheFuture"]
    golden.update(extraData={}, directories=[])  # Holdfast has no use for them
    ours = json.loads(encode_intermediate_manifest(_MANIFEST, _URL))
    assert ours == golden and list(ours) == list(golden)


def test_rows_travel_in_a_field_that_hadoop_skips() -> None:
    manifest = IntermediateManifest(
        job_id="job_1",
        task_id="task_1",
        task_attempt_id="attempt_1",
        task_attempt_dir=_ATTEMPT,
        files=(ManifestFile(source=f"{_ATTEMPT}/x", dest="x", size_bytes=8, rows=3),),
    )
    data = encode_intermediate_manifest(manifest, _URL)
    assert json.loads(data)["files"][0]["holdfast.rows"] == 3
    assert _decode(data) == manifest


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("file:///data/out put", "file:/data/out%20put"),
        ("file:///", "file:"),
        ("s3://bucket/a+b", "s3a://bucket/a+b"),
        ("s3://bucket", "s3a://bucket"),
        ("memory://name/[a]", "memory://name/%5Ba%5D"),
    ],
)
def test_paths_are_absolute_uris_of_the_destination(url: str, base: str) -> None:
    data = encode_intermediate_manifest(_MANIFEST, url)
    assert json.loads(data)["files"][1]["d"] == f"{base}/x"
    assert _decode(data, url) == _MANIFEST


@pytest.mark.parametrize("base", ["file:///data/out%20put", "file:/data/out%20put", "FILE:/data/out%20pu%74"])
def test_one_place_has_several_spellings(base: str) -> None:
    assert _decode(_GOLDEN.replace("file:/data/out%20put", base).encode()) == _MANIFEST


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_schemes_of_s3_are_one(scheme: str) -> None:
    data = encode_intermediate_manifest(_MANIFEST, "s3://bucket/t").replace(b"s3a://", f"{scheme}://".encode())
    assert _decode(data, "s3://bucket/t") == _MANIFEST


def _set(name: str, found: object) -> _Change:
    return lambda value: value.update({name: found})


def _in_file(name: str, found: object) -> _Change:
    return lambda value: value["files"][0].update({name: found})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda value: value["files"].append(value["files"][0]), "two files have the same dest"),
        (_in_file("z", -1), "the size of a file is not a count"),
        (lambda value: value["files"][0].pop("z"), "the size of a file is not a count"),
        (_in_file("z", "1"), "the size of a file is not a count"),
        (lambda value: value["files"][0].pop("d"), "the dest of a file is missing"),
        (_in_file("d", ""), "the dest of a file is missing"),
        (_in_file("d", None), "the dest of a file is missing"),
        (lambda value: value["files"][0].pop("s"), "the source of a file is missing"),
        (_in_file("s", ""), "the source of a file is missing"),
        (_set("version", 2), "version is not 1"),
        (_set("version", True), "version is not 1"),
        (lambda value: value.pop("version"), "version is not 1"),
        (_set("type", "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"), "type is not that of a task's manifest"),
        (lambda value: value.pop("type"), "type is not that of a task's manifest"),
    ],
)
def test_what_hadoop_refuses_is_refused_with_the_reason(change: _Change, reason: str) -> None:
    """Scenario 58: duplicate dest, negative length, missing dest, wrong version, wrong type."""
    _refused(change, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("jobId", "job_2"), "another job's"),
        (_set("taskID", ""), "taskID is not a text"),
        (_set("taskAttemptID", None), "taskAttemptID is not a text"),
        (_set("jobAttemptNumber", -1), "jobAttemptNumber is not a count"),
        (_set("taskAttemptDir", "file:/data/out%20put/_temporary/manifest_job_1"), "outside the job's"),
        (_set("taskAttemptDir", "file:/data/out%20put/_temporary/manifest_job_12/00"), "outside the job's"),
        (_set("taskAttemptDir", "file:/data/out%20put/_temporary/manifest_job_1/../x"), "outside the job's"),
        (_set("taskAttemptDir", "file:/data/out%20put2/_temporary/manifest_job_1/00"), "outside the destination"),
        (_set("files", {}), "files is not a list"),
        (_set("files", ["x"]), "a file is not an object"),
        (_in_file("s", "file:/data/out%20put/_temporary/manifest_job_1/00/tasks/attempt_2/x"), "outside the attempt's"),
        (_in_file("s", "file:/data/out%20put/x"), "outside the attempt's"),
        (_in_file("s", f"file:/data/out%20put/{_ATTEMPT}"), "outside the attempt's"),
        (_in_file("s", f"file:/data/out%20put/{_ATTEMPT}/../attempt_2/x"), "outside the attempt's"),
        (_in_file("s", f"file:/data/out%20put/{_ATTEMPT}/%2e%2e/attempt_2/x"), "outside the attempt's"),
        (_in_file("s", f"file:/data/out%20put/{_ATTEMPT}/a%00b"), "outside the attempt's"),
        (_in_file("s", "/etc/passwd"), "not a uri"),
        (_in_file("s", 3), "s is not a text"),
        (_in_file("d", "file:/data/secret"), "outside the destination"),
        (_in_file("d", "file:/data/out%20put"), "a dest leaves the destination"),
        (_in_file("d", "file:/data/out%20put/../secret"), "a dest leaves the destination"),
        (_in_file("d", "file:/data/out%20put/%2E%2E/secret"), "a dest leaves the destination"),
        (_in_file("d", "file:/data/out%20put/a%2F..%2F..%2Fb"), "a dest leaves the destination"),
        (_in_file("d", "file:/data/out%20put//etc/passwd"), "a dest leaves the destination"),
        (_in_file("d", "file:/data/out%20put/_holdfast/log/1.json"), "a dest leaves the destination"),
        (_in_file("d", "file://host/data/out%20put/x"), "outside the destination"),
        (_in_file("d", "s3a://data/out%20put/x"), "outside the destination"),
        (_in_file("d", "file:/data/out put/x"), "not a uri"),
        (_in_file("d", "file:/data/out%20put/x?y"), "not a uri"),
        (_in_file("d", "file:/data/out%20put/x#y"), "not a uri"),
        (_in_file("d", "file:/data/out%20put/x%"), "not a uri"),
        (_in_file("d", "file:/data/out%20put/x\u2028"), "not a uri"),
        (_in_file("d", "file:/data/out%20put/\ud800"), "not a uri"),
        (_in_file("d", "file:/data/out%20put/%ff"), "utf-8"),
        (_in_file("e", 3), "e is not a text"),
        (_in_file("holdfast.rows", -3), "holdfast.rows is not a count"),
        (_in_file("z", 2**63), "z is not a count"),
        (_set("iostatistics", 3), "iostatistics is not an object"),
    ],
)
def test_a_damaged_manifest_is_refused_with_the_reason(change: _Change, reason: str) -> None:
    """C7: renames stay below the destination and move only the attempt's own files."""
    _refused(change, reason)


def _refused(change: _Change, reason: str) -> None:
    value = json.loads(_GOLDEN)
    change(value)
    with pytest.raises(CorruptDataError) as caught:
        _decode(json.dumps(value).encode())
    assert reason in str(caught.value.variables["reason"])
    assert caught.value.variables["key"] == _KEY


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptDataError):
        _decode(data)


def test_a_manifest_of_absurd_size_is_refused() -> None:
    with pytest.raises(CorruptDataError, match="too long"):
        _decode(bytes(MAX_MANIFEST_BYTES + 1))


def test_the_longest_manifest_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.commit.hadoop.manifest.format.MAX_MANIFEST_BYTES", len(_GOLDEN.encode()))
    assert _decode(_GOLDEN.encode()) == _MANIFEST


_CHARACTERS = st.characters(codec="utf-8", exclude_characters="/\0")
_NAME = st.text(_CHARACTERS, min_size=1, max_size=8).filter(lambda name: not name.startswith((".", "_")))
_PATH = st.lists(_NAME, min_size=1, max_size=3).map("/".join)
_COUNT = st.integers(0, 2**40)
_URLS = st.one_of(
    st.just("s3://bucket"), _PATH.map("s3://bucket/{}".format), st.just("file:///"), _PATH.map("file:///{}".format)
)


@st.composite
def _manifests(draw: st.DrawFn) -> IntermediateManifest:
    attempt_dir = f"{job_dir('job_1')}/00/tasks/{draw(_NAME)}"
    paths = draw(st.lists(_PATH, max_size=4, unique=True))
    return IntermediateManifest(
        job_id="job_1",
        task_id=draw(_NAME),
        task_attempt_id=draw(_NAME),
        task_attempt_dir=attempt_dir,
        files=tuple(
            ManifestFile(
                source=f"{attempt_dir}/{path}", dest=path, size_bytes=draw(_COUNT), etag=draw(_NAME), rows=draw(_COUNT)
            )
            for path in paths
        ),
        job_attempt=draw(_COUNT),
        statistics=draw(statistics()),
    )


@given(_manifests(), _URLS)
def test_any_manifest_comes_back_as_it_was(manifest: IntermediateManifest, url: str) -> None:
    assert _decode(encode_intermediate_manifest(manifest, url), url) == manifest


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_changed_byte_never_leads_elsewhere(place: int, byte: int) -> None:
    data = bytearray(_GOLDEN.encode())
    data[place % len(data)] = byte
    try:
        manifest = _decode(bytes(data))
    except CorruptDataError:
        return
    for file in manifest.files:
        assert file.source.startswith(f"{manifest.task_attempt_dir}/") and ".." not in file.source.split("/")
        assert not file.dest.startswith(("/", "_", ".")) and ".." not in file.dest.split("/")
