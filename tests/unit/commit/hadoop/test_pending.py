"""Test ``.pending`` and ``.pendingset``: Hadoop's own files, round trips, and every check of the decoder."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.commit.hadoop.pending import (
    MAX_PENDING_BYTES,
    MAX_PENDINGSET_BYTES,
    PendingSet,
    SinglePending,
    decode_pending,
    decode_pendingset,
    encode_pending,
    encode_pendingset,
)
from holdfast.commit.records import FileEntry
from holdfast.commit.statistics import DurationStatistics, Statistics
from holdfast.errors import CorruptDataError
from holdfast.stores.base import Part
from tests.unit.commit.statistics_values import statistics

_RECORD = "out put/__magic_job-j1/00/tasks/attempt_3/__base/year=2026/a b.csv.pending"

# What Hadoop's SinglePendingCommit writes for a file of 12 bytes in two parts: its fields in order, unset
# ones null or empty, and one that a later version might add.
_GOLDEN = """{
  "version" : 2,
  "filename" : null,
  "uri" : "s3a://bucket/out%20put/__magic_job-j1/00/tasks/attempt_3/__base/year=2026/a%20b.csv",
  "uploadId" : "2~upload",
  "bucket" : "bucket",
  "destinationKey" : "out put/year=2026/a b.csv",
  "created" : 1795253933123,
  "saved" : 1795253933123,
  "date" : "Sat Nov 21 09:38:53 UTC 2026",
  "jobId" : "",
  "taskId" : "",
  "text" : "",
  "etags" : [ { "etag" : "\\"9b2c\\"", "checksumAlgorithm" : null, "checksum" : null },
              { "etag" : "\\"77fe\\"", "checksumAlgorithm" : null, "checksum" : null } ],
  "extraData" : { },
  "length" : 12,
  "iostatistics" : {
    "counters" : { "object_put_request" : 1, "object_put_request.failures" : 0 },
    "gauges" : { },
    "minimums" : { "object_put_request.min" : 7 },
    "maximums" : { "object_put_request.max" : 7 },
    "meanstatistics" : { "object_put_request.mean" : { "samples" : 1, "sum" : 7 } }
  },
  "partCount" : 2,
  "fromTheFuture" : [ 1, 2 ]
}"""

_PENDING = SinglePending(
    bucket="bucket",
    key="out put/year=2026/a b.csv",
    upload_id="2~upload",
    parts=(Part(1, "9b2c", 0), Part(2, "77fe", 0)),
    size_bytes=12,
    uri="s3a://bucket/out%20put/__magic_job-j1/00/tasks/attempt_3/__base/year=2026/a%20b.csv",
    created_ms=1795253933123,
    statistics=Statistics(durations={"object_put_request": DurationStatistics(1, 0, 7, 7, 7)}),
)

_Change = Callable[[dict[str, Any]], object]


def _decode(data: bytes, *, prefix: str = "out put/") -> SinglePending:
    return decode_pending(_RECORD, data, bucket="bucket", prefix=prefix, job_id="j1")


def _decode_set(data: bytes) -> PendingSet:
    return decode_pendingset("x.pendingset", data, bucket="bucket", prefix="out put/", job_id="j1")


def test_what_hadoop_wrote_is_read() -> None:
    assert _decode(_GOLDEN.encode()) == _PENDING


def test_ours_has_hadoops_fields_and_no_others() -> None:
    golden = json.loads(_GOLDEN)
    del golden["fromTheFuture"]
    golden["date"] = "2026-11-21T09:38:53Z"  # for people
    assert json.loads(encode_pending(_PENDING)) == golden


def test_etags_as_texts_for_releases_up_to_3_4_1() -> None:
    """HADOOP-15224: they are read, and never written."""
    golden = json.loads(_GOLDEN)
    golden["etags"] = ['"9b2c"', '"77fe"']
    assert _decode(json.dumps(golden).encode()) == _PENDING


def test_checksums_of_parts_are_kept() -> None:
    value = json.loads(_GOLDEN)
    value["etags"] = [
        {"etag": "e1", "checksumAlgorithm": "CRC32C", "checksum": "yZRlqg=="},
        {"etag": "e2", "checksumAlgorithm": None, "checksum": None},
    ]
    pending = _decode(json.dumps(value).encode())
    assert pending.parts == (Part(1, "e1", 0, "CRC32C", "yZRlqg=="), Part(2, "e2", 0))
    quoted = [{**one, "etag": f'"{one["etag"]}"'} for one in value["etags"]]
    assert json.loads(encode_pending(pending))["etags"] == quoted


def test_sizes_of_parts_and_rows_travel_where_hadoop_keeps_what_it_does_not_know() -> None:
    pending = SinglePending(
        bucket="bucket",
        key="out put/a",
        upload_id="u",
        parts=(Part(1, "e1", 8), Part(2, "e2", 4)),
        size_bytes=12,
        uri="s3a://bucket/out%20put/a",
        rows=3,
    )
    value = json.loads(encode_pending(pending))
    assert value["extraData"] == {"holdfast.part.sizes": "8,4", "holdfast.rows": "3"}
    assert _decode(encode_pending(pending)) == pending
    assert pending.file_entry("out put/") == FileEntry(
        path="a", size_bytes=12, rows=3, upload_id="u", parts=(("e1", 8), ("e2", 4))
    )


def test_an_empty_file_is_one_empty_part() -> None:
    """scenario 2"""
    pending = SinglePending(
        bucket="bucket", key="out put/a", upload_id="u", parts=(Part(1, "e", 0),), size_bytes=0, uri="s3a://bucket/a"
    )
    assert _decode(encode_pending(pending)) == pending


def test_the_whole_bucket_may_be_the_destination() -> None:
    assert _decode(_GOLDEN.encode(), prefix="") == _PENDING


def _set(name: str, found: object) -> _Change:
    return lambda value: value.update({name: found})


def _without(name: str) -> _Change:
    return lambda value: value.pop(name)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("version", 1), "version is not 2"),
        (_set("version", "2"), "version is not 2"),
        (_set("version", True), "version is not 2"),
        (_without("version"), "version"),
        (_set("bucket", ""), "bucket is not a text"),
        (_set("bucket", None), "bucket is not a text"),
        (_set("bucket", "other"), "the bucket is another one"),
        (_without("destinationKey"), "destinationKey"),
        (_set("destinationKey", ""), "destinationKey is not a text"),
        (_set("destinationKey", 3), "destinationKey is not a text"),
        (_set("destinationKey", "out put2/a"), "leaves the destination"),
        (_set("destinationKey", "out put/../secret"), "leaves the destination"),
        (_set("destinationKey", "out put/a/../../b"), "leaves the destination"),
        (_set("destinationKey", "out put//a"), "leaves the destination"),
        (_set("destinationKey", "out put/"), "leaves the destination"),
        (_set("destinationKey", "out put/_SUCCESS"), "leaves the destination"),
        (_set("destinationKey", "out put/_holdfast/log/0.json"), "leaves the destination"),
        (_set("destinationKey", "out put/a\0b"), "leaves the destination"),
        (_set("destinationKey", "out put/\ud800"), "destinationKey is not valid Unicode"),
        (_set("uploadId", ""), "uploadId is not a text"),
        (_set("length", -1), "length is not a count"),
        (_set("length", 1.5), "length is not a count"),
        (_set("length", 2**63), "length is not a count"),
        (_set("uri", ""), "uri is not a text"),
        (_set("uri", "s3a://bucket/a b"), "not a uri"),
        (_set("uri", "no scheme"), "not a uri"),
        (_set("uri", "s3a://bucket/%zz"), "not a uri"),
        (_without("etags"), "etags"),
        (_set("etags", None), "etags are missing"),
        (_set("etags", []), "etags are missing"),
        (_set("etags", ["e", ""]), "an etag is empty"),
        (_set("etags", [{"etag": ""}]), "etag is not a text"),
        (_set("etags", ['""']), "an etag is empty"),
        (_set("etags", [{"etag": "e", "checksum": "c"}]), "belong together"),
        (_set("etags", [{"etag": "e", "checksumAlgorithm": "CRC32"}]), "belong together"),
        (_set("etags", [{"etag": "e", "checksumAlgorithm": "X><", "checksum": "c"}]), "unknown algorithm"),
        (_set("etags", [{"checksum": "c"}]), "etag"),
        (_set("etags", [3]), "neither a text nor an object"),
        (_set("etags", ["e"] * 10_001), "at most 10000 parts"),
        (_set("jobId", "j2"), "another job's"),
        (_set("jobId", 1), "jobId is not a text"),
        (_set("created", "now"), "created is not a count"),
        (_set("extraData", []), "extraData is not an object"),
        (_set("extraData", {"k": 1}), "extraData contains values that are not texts"),
        (_set("extraData", {"holdfast.rows": "-1"}), "holdfast.rows is not a count"),
        (_set("extraData", {"holdfast.rows": "9" * 5000}), "holdfast.rows is not a count"),
        (_set("extraData", {"holdfast.part.sizes": "5,6"}), "do not add up"),
        (_set("extraData", {"holdfast.part.sizes": "12"}), "do not add up"),
        (_set("extraData", {"holdfast.part.sizes": "6,x"}), "holdfast.part.sizes is not a count"),
        (_set("iostatistics", []), "iostatistics is not an object"),
        (_set("iostatistics", {"counters": {"a": "1"}}), "statistic a"),
    ],
)
def test_a_damaged_record_is_refused_with_the_reason(change: _Change, reason: str) -> None:
    """What SinglePendingCommit.validate refuses, and more: no record may point outside the destination (C7)."""
    value = json.loads(_GOLDEN)
    change(value)
    data = json.dumps(value).encode()
    with pytest.raises(CorruptDataError) as caught:
        _decode(data)
    assert reason in str(caught.value.variables["reason"])
    assert caught.value.variables["key"] == _RECORD


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{", b'"\xff"', b"[" * 100_000])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptDataError):
        _decode(data)
    with pytest.raises(CorruptDataError):
        _decode_set(data)


def test_a_record_of_absurd_size_is_refused() -> None:
    with pytest.raises(CorruptDataError, match="too long"):
        _decode(b" " * (MAX_PENDING_BYTES + 1))


def test_a_set_of_absurd_size_is_refused() -> None:
    with pytest.raises(CorruptDataError, match="too long"):
        _decode_set(bytes(MAX_PENDINGSET_BYTES + 1))


def _pendingset() -> dict[str, Any]:
    one = json.loads(_GOLDEN)
    two = {**copy.deepcopy(one), "destinationKey": "out put/b", "jobId": "j1", "taskId": "task_3"}
    return {
        "version": 3,
        "jobId": "j1",
        "commits": [one, two],
        "extraData": {"task.attempt.id": "attempt_3"},
        "iostatistics": {"counters": {"committer_commits_created": 2}, "gauges": {}},
        "fromTheFuture": None,
    }


def test_a_set_that_hadoop_wrote_is_read() -> None:
    pendingset = _decode_set(json.dumps(_pendingset(), indent=2).encode())
    assert [pending.key for pending in pendingset.commits] == ["out put/year=2026/a b.csv", "out put/b"]
    assert pendingset.attempt == "attempt_3"
    assert pendingset.statistics == Statistics(counters={"committer_commits_created": 2})
    assert json.loads(encode_pendingset(pendingset))["version"] == 3
    assert _decode_set(encode_pendingset(pendingset)) == pendingset


@pytest.mark.parametrize("change", [{"version": 2}, {"jobId": ""}, {"jobId": None}])
def test_older_sets_and_those_of_staging_are_read(change: dict[str, Any]) -> None:
    """Version 2 is from releases before 3.3.6; Hadoop's staging committers omit the job."""
    same = _decode_set(json.dumps(_pendingset()).encode())
    assert _decode_set(json.dumps({**_pendingset(), **change}).encode()) == same


def test_a_task_without_output_has_an_empty_set() -> None:
    """scenario 3"""
    empty = PendingSet(job_id="j1", commits=())
    assert _decode_set(encode_pendingset(empty)) == empty


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("version", 1), "version is neither 2 nor 3"),
        (_set("version", 4), "version is neither 2 nor 3"),
        (_set("version", "3"), "version is neither 2 nor 3"),
        (_set("version", 3.0), "version is neither 2 nor 3"),
        (_without("version"), "version"),
        (lambda value: value["commits"][0].update({"version": 3}), "version is not 2"),
        (_set("jobId", "j2"), "another job's"),
        (_set("jobId", 1), "jobId is not a text"),
        (_without("commits"), "commits"),
        (_set("commits", {}), "commits are not a list of objects"),
        (_set("commits", [3]), "commits are not a list of objects"),
        (_set("extraData", {"a": None}), "extraData contains values that are not texts"),
        (lambda value: value["commits"].append(value["commits"][0]), "the same destination"),
        (lambda value: value["commits"][1].update({"jobId": "j2"}), "another job's"),
        (lambda value: value["commits"][1].update({"destinationKey": "b"}), "leaves the destination"),
        (lambda value: value["commits"][1].update({"length": -1}), "length is not a count"),
    ],
)
def test_a_damaged_set_is_refused_with_the_reason(change: _Change, reason: str) -> None:
    value = _pendingset()
    change(value)
    with pytest.raises(CorruptDataError) as caught:
        _decode_set(json.dumps(value).encode())
    assert reason in str(caught.value.variables["reason"])


_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_SEGMENT = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda name: not name.startswith((".", "_"))
)


@st.composite
def _pendings(draw: st.DrawFn) -> SinglePending:
    parts = draw(
        st.lists(
            st.builds(
                lambda *given: Part(0, *given),
                _TEXT.filter(lambda etag: bool(etag.strip('"')) and '"' not in etag),
                st.integers(0, 2**33),
                st.sampled_from(["", "CRC32", "SHA256"]),
                st.sampled_from(["", "abc="]),
            ).filter(lambda part: bool(part.checksum_algorithm) == bool(part.checksum)),
            min_size=1,
            max_size=5,
        )
    )
    return SinglePending(
        bucket="bucket",
        key="out put/" + "/".join(draw(st.lists(_SEGMENT, min_size=1, max_size=3))),
        upload_id=draw(_TEXT.filter(bool)),
        parts=tuple(replace(part, number=number) for number, part in enumerate(parts, 1)),
        size_bytes=sum(part.size_bytes for part in parts),
        uri="s3a://bucket/out%20put/x",
        rows=draw(st.integers(0, 2**40)),
        created_ms=draw(st.integers(0, 2**45)),
        job_id=draw(st.sampled_from(["", "j1"])),
        task_id=draw(_TEXT),
        statistics=draw(statistics()),
    )


@given(_pendings())
def test_any_upload_comes_back_as_it_was(pending: SinglePending) -> None:
    assert _decode(encode_pending(pending)) == pending


@given(st.lists(_pendings(), max_size=4, unique_by=lambda pending: pending.key), _TEXT, statistics())
def test_any_set_comes_back_as_it_was(commits: list[SinglePending], attempt: str, taken: Statistics) -> None:
    pendingset = PendingSet(job_id="j1", commits=tuple(commits), attempt=attempt, statistics=taken)
    assert _decode_set(encode_pendingset(pendingset)) == pendingset


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_changed_byte_never_leads_elsewhere(place: int, byte: int) -> None:
    data = bytearray(encode_pending(_PENDING))
    data[place % len(data)] = byte
    try:
        pending = _decode(bytes(data))
    except CorruptDataError:
        return
    assert pending.bucket == "bucket" and pending.key.startswith("out put/") and ".." not in pending.key.split("/")
