"""Forge every field of every record: each forgery is named in an error, and values at the limits are accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from holdfast.commit import TWO_PHASE, SaveMode, codec
from holdfast.commit.codec import BadFieldError
from holdfast.commit.hadoop.uri import check_uri, encode_uri, path_below
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_name
from holdfast.commit.intents import find_announcers
from holdfast.commit.layout import attempt_file_path, intents_path, log_entry_path, manifest_path
from holdfast.commit.records import FileEntry, JobRecord, Kind, ManifestRef, StreamBatch, Totals
from holdfast.commit.two_phase import records as two_phase_records
from holdfast.commit.two_phase.decision_log import WRITE_ID, find_job_by_write_id, read_log
from holdfast.commit.two_phase.records import ListRef, LogEntry, LogState, StreamMark, TaskManifest
from holdfast.commit.writes import find_job_by_token
from holdfast.errors import CorruptDataError
from holdfast.stores.base import UploadInfo
from tests.simulation.world import HOME, World
from tests.unit.commit.committer_jobs import Bucket

JOB = JobId("20261121093853123-a1b2c3d4e5f6")
OTHER = JobId("20261121093853123-ffffffffffff")
ATTEMPT = AttemptId("0123456789ab")
RECORD = JobRecord(
    job=JOB,
    committer="two_phase",
    publication="upload",
    mode=SaveMode.APPEND,
    base_seq=4,
    started_at_s=1.5,
    stream=StreamBatch(stream="s", checkpoint="c", batch=7),
)
ENTRY = LogEntry(
    seq=5,
    kind=Kind.COMMIT,
    record=RECORD,
    token="t",
    decided_at_s=2.5,
    totals=Totals(files=1, size_bytes=2, rows=3),
    after="s",
    tasks=1,
    manifests=ListRef(key=f"_holdfast/jobs/{JOB}/committed-t.jsonl", sha256="0" * 64, count=1),
    replaced_by_job={OTHER: (1, 2)},
    state=LogState(streams={"s": StreamMark(batch=7, checkpoint="c")}, table={"format": "csv"}),
)
NAME = file_name(FileOwner(JOB, 3, ATTEMPT), 0, ".csv")


def _changed(record: dict[str, Any], path: str, value: object) -> bytes:
    """Return the record with another value at `a.b`."""
    *way, last = path.split(".")
    at: Any = record
    for name in way:
        at = at[int(name) if isinstance(at, list) else name]
    at[int(last) if isinstance(at, list) else last] = value
    return json.dumps(record).encode()


# --- decisions and jobs -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("stream", []),
        ("stream", "x"),
        ("stream.stream", 5),
        ("stream.checkpoint", ""),
        ("stream.batch", -1),
        ("stream.batch", True),
        ("streams", []),
        ("streams.s", [7]),
        ("streams.s", [7, "c", 1]),
        ("streams.s", {"7": 1, "c": 2}),
        ("streams.s", ["7", "c"]),
        ("streams.s", [-1, "c"]),
        ("streams.s", [True, "c"]),
        ("streams.s", [7, None]),
        ("table", []),
        ("table", "x"),
        ("after", ""),
        ("after", 5),
        ("tasks", -1),
        ("bytes", -1),
        ("rows", 1.5),
        ("chosen.rows", -1),
        ("committer", 5),
        ("started_at_s", -0.5),
        ("started_at_s", True),
        ("started_at_s", 1e12),
        ("details", []),
        ("manifests", "x"),
        ("manifests.key", f"_holdfast/job/{JOB}/committed-t.jsonl"),
        ("manifests.sha256", "0" * 63),
        ("manifests.sha256", "0" * 65),
        ("manifests.sha256", "g" * 64),
        ("manifests.sha256", "A" * 64),
        ("manifests.count", -1),
        (f"replaced_by_job.{OTHER}", [1]),
    ],
)
def test_a_decision(path: str, value: object) -> None:
    whole = two_phase_records.encode_entry(ENTRY)
    assert two_phase_records.decode_entry(log_entry_path(5), 5, whole) == ENTRY
    with pytest.raises(CorruptDataError, match="its bytes are kept"):
        two_phase_records.decode_entry(log_entry_path(5), 5, _changed(json.loads(whole), path, value))


@pytest.mark.parametrize("seconds", [0, 0.0, 1e12 - 1])
def test_times_at_their_limits_are_right(seconds: float) -> None:
    data = codec.encode_job(replace(RECORD, started_at_s=seconds))
    assert codec.decode_job(f"_holdfast/jobs/{JOB}/job.json", data).started_at_s == seconds


def test_a_job_record_that_lies_about_being_announced_is_none() -> None:
    data = _changed(json.loads(codec.encode_job(replace(RECORD, announced=True))), "announced", "yes")
    assert codec.decode_job(f"_holdfast/jobs/{JOB}/job.json", data).announced is False


# --- manifests --------------------------------------------------------------------------------------------------------
UPLOADED = FileEntry(path=NAME, size_bytes=3, upload_id="u", parts=(("e", 1), ("f", 2)))
MOVED = FileEntry(path=NAME, size_bytes=3, source=attempt_file_path(JOB, 3, ATTEMPT, NAME))
CHOSEN = FileEntry(
    path="a.csv", size_bytes=3, source=attempt_file_path(JOB, 3, ATTEMPT, "a.csv"), etag="e", modified_at_s=1.0
)


def _decoded(lines: list[bytes], **ref: Any) -> TaskManifest:
    data = b"\n".join(lines) + b"\n"
    given = {"key": manifest_path(JOB, 3, ATTEMPT), "task": 3, "totals": Totals(files=1), **ref}
    return two_phase_records.decode_manifest(ManifestRef(sha256=codec.sha256_hex(data), **given), data)


def _lines(file: FileEntry) -> list[bytes]:
    whole = two_phase_records.encode_manifest(TaskManifest(job=JOB, task=3, attempt=ATTEMPT, files=(file,)))
    return whole.splitlines()


@pytest.mark.parametrize(
    ("file", "path", "value"),
    [
        (UPLOADED, "parts", "x"),
        (UPLOADED, "parts.0", "ee"),
        (UPLOADED, "parts.0", ["e"]),
        (UPLOADED, "parts.0", ["e", 1, 1]),
        (UPLOADED, "parts.0", [1, 1]),
        (UPLOADED, "parts.0", ["e", True]),
        (UPLOADED, "parts.0", ["e", "1"]),
        (UPLOADED, "parts", [["e", -1], ["f", 4]]),
        (UPLOADED, "bytes", 4),
        (UPLOADED, "rows", -1),
        (UPLOADED, "upload_id", ""),
        (UPLOADED, "path", f"x/../{NAME}"),
        (MOVED, "source", attempt_file_path(JOB, 4, ATTEMPT, NAME)),
        (MOVED, "source", ""),
        (CHOSEN, "etag", ""),
        (CHOSEN, "modified_at_s", -1),
        (CHOSEN, "path", "_a.csv"),
    ],
)
def test_a_file_of_a_manifest(file: FileEntry, path: str, value: object) -> None:
    header, line = _lines(file)
    assert _decoded([header, line]).files == (file,)
    with pytest.raises(CorruptDataError):
        _decoded([header, _changed(json.loads(line), path, value)])


@pytest.mark.parametrize(
    ("path", "value"),
    [("format", "holdfast-manifest/2"), ("job", "x"), ("job", OTHER), ("task", 4), ("attempt", ""), ("files", 2)],
)
def test_the_header_of_a_manifest(path: str, value: object) -> None:
    header, line = _lines(MOVED)
    forged = _changed(json.loads(header), path, value)
    with pytest.raises(CorruptDataError):
        _decoded([forged, line])
    data = b"\n".join([forged, line]) + b"\n"
    with pytest.raises(CorruptDataError):
        two_phase_records.decode_leftover_manifest(manifest_path(JOB, 3, ATTEMPT), data)


@pytest.mark.parametrize("ref", [{"task": 4}, {"key": manifest_path(JOB, 4, ATTEMPT)}, {"totals": Totals(files=2)}])
def test_a_manifest_in_another_place_than_its_own(ref: dict[str, Any]) -> None:
    with pytest.raises(CorruptDataError):
        _decoded(_lines(MOVED), **ref)


def test_ten_thousand_parts_are_right() -> None:
    many = replace(UPLOADED, size_bytes=10_000, parts=(("e", 1),) * 10_000)
    assert _decoded(_lines(many)).files == (many,)


# --- intents and lists ------------------------------------------------------------------------------------------------
OWNER = FileOwner(JOB, 3, ATTEMPT)


@pytest.mark.parametrize(
    ("number", "path", "value"),
    [
        (0, "format", "holdfast-intents/2"),
        (0, "job", OTHER),
        (0, "task", 4),
        (0, "files", 3),
        (1, "path", "../a"),
        (1, "path", file_name(FileOwner(OTHER, 3, ATTEMPT), 0, ".csv")),
    ],
)
def test_a_record_of_intents(number: int, path: str, value: object) -> None:
    key, whole = intents_path(JOB, 3, ATTEMPT, 0), codec.encode_intents(OWNER, ["a", "b"])
    assert codec.decode_intents(f"x/{key}", whole) == (OWNER, ("a", "b"))
    lines = whole.splitlines()
    lines[number] = _changed(json.loads(lines[number]), path, value)
    with pytest.raises(CorruptDataError):
        codec.decode_intents(key, b"\n".join(lines))


@pytest.mark.parametrize("number", ["", "x", "٣", "1²", "-"])
def test_a_record_of_intents_without_a_number(number: str) -> None:
    key = intents_path(JOB, 3, ATTEMPT, 0).replace("-0.jsonl", f"-{number}.jsonl")
    assert key != intents_path(JOB, 3, ATTEMPT, 0)
    with pytest.raises(CorruptDataError, match="its bytes are kept"):
        codec.decode_intents(key, codec.encode_intents(OWNER, []))


@pytest.mark.parametrize(("path", "value"), [("sha256", "0" * 63), ("sha256", "g" * 64), ("task", -1), ("rows", None)])
def test_a_line_of_the_manifests_of_a_decision(path: str, value: object) -> None:
    ref = ManifestRef(key=manifest_path(JOB, 3, ATTEMPT), sha256="0" * 64, task=3, totals=Totals(files=1))
    line = two_phase_records.encode_manifest_list([ref])

    def decoded(data: bytes) -> list[ManifestRef]:
        return list(
            two_phase_records.decode_manifest_list(
                ListRef(key="_holdfast/jobs/x", sha256=codec.sha256_hex(data), count=1), data
            )
        )

    assert decoded(line) == [ref]
    with pytest.raises(CorruptDataError):
        decoded(_changed(json.loads(line), path, value) + b"\n")


# --- what is remembered of writes -------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [-1, True, "7", None, 1.5])
def test_invalid_counts_of_a_report_are_ignored(value: object) -> None:
    """Hadoop's tools write reports as well: an invalid count is ignored and breaks nothing."""
    bucket = Bucket("magic")
    ctx = bucket.context()
    job = bucket.value.setup_job(ctx, SaveMode.APPEND, {"token": "t"})
    assert job is not None
    bucket.commit(ctx, job, [bucket.run_task(ctx, job, 0, [b"12345"])])
    report = json.loads(ctx.store.get(ctx.key("_SUCCESS")))
    assert (found := find_job_by_token(ctx, "t")) is not None
    assert found.totals.files == 1
    report["metrics"]["files"] = value
    ctx.store.put(ctx.key("_SUCCESS"), json.dumps(report).encode())
    assert (found := find_job_by_token(ctx, "t")) is not None
    assert found.totals.files == 0


def test_an_aborted_write_is_not_remembered() -> None:
    """Its write id stays unused: the caller retries."""
    world = World("upload")
    job = TWO_PHASE.setup_job(world.context(), SaveMode.APPEND, {WRITE_ID: "nightly"})
    assert job is not None
    TWO_PHASE.abort_job(world.context(), job)
    assert find_job_by_write_id(world.context(), read_log(world.context()), "nightly") is None


def test_who_has_announced_an_upload_is_looked_up_by_its_key() -> None:
    """Only if the name does not contain the job; and for each such upload."""
    world = World("upload")
    ctx = world.context()
    keys = [ctx.key("a"), ctx.key("b")]
    ctx.store.put(ctx.key(intents_path(JOB, 3, ATTEMPT, 0)), codec.encode_intents(OWNER, ["a", "b"]))
    uploads = [UploadInfo(key=key, upload_id="u", initiated_at_s=0.0) for key in (*keys, ctx.key(NAME))]
    assert find_announcers(ctx, uploads) == {key: {JOB} for key in keys}
    assert find_announcers(ctx, uploads[2:]) == {}
    assert HOME in keys[0]


# --- urls -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ask", [lambda url: encode_uri(url, "a"), lambda url: path_below("s3a://b/a", url)])
def test_what_is_no_url(ask: Callable[[str], str]) -> None:
    with pytest.raises(BadFieldError, match="is not a url"):
        ask("out/put")


@pytest.mark.parametrize(
    ("url", "uri"),
    [
        ("s3a://b", "s3a://b/"),
        ("s3a://b/", "s3a://b/"),
        ("s3a://b/out put/", "s3a://b/out%20put"),
        ("file:///", "file:/"),
    ],
)
def test_the_uri_of_a_destination(url: str, uri: str) -> None:
    assert encode_uri(url) == uri
    assert path_below(uri, url) == ""


@pytest.mark.parametrize("uri", ["", "a b://c", "s3a://b/a b", " s3a://b/a", "s3a://b/%2", "s3a:b", "s3a://b/a\n"])
def test_what_java_would_not_parse(uri: str) -> None:
    with pytest.raises(BadFieldError):
        check_uri(uri)


@pytest.mark.parametrize(
    ("uri", "url", "path"),
    [
        ("s3a://b/data/x", "s3://b/data", "x"),
        ("s3a://b/data", "s3://b/data/", ""),
        ("file:/data/a%20b", "file:///data", "a b"),
    ],
)
def test_a_place_below(uri: str, url: str, path: str) -> None:
    assert path_below(uri, url) == path
    for other in (uri.replace("data", "data10"), uri.replace(":/", "x:/", 1)):
        with pytest.raises(BadFieldError, match="outside"):
            path_below(other, url)
