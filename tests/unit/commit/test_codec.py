"""Encode and decode stored records; errors name every kind of damage, and the bytes are kept (faults 84, 94)."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.commit import codec
from holdfast.commit.ids import AttemptId, FileOwner, JobId, file_name
from holdfast.commit.layout import attempt_file_path, log_entry_path, manifest_path
from holdfast.commit.records import FileEntry, JobRecord, Kind, ManifestRef, SaveMode, Totals
from holdfast.commit.statistics import DurationStatistics, Statistics
from holdfast.commit.two_phase import records as two_phase_records
from holdfast.commit.two_phase.records import ListRef, LogEntry, ReplacedFile, TaskManifest
from holdfast.errors import CorruptDataError

STATISTICS = Statistics(counters={"files": 2}, durations={"put": DurationStatistics(1, 0, 5, 5, 5)})
JOB = JobId("20261121093853123-a1b2c3d4e5f6")
ATTEMPT = AttemptId("0123456789ab")
OWNER = FileOwner(JOB, 3, ATTEMPT)
RECORD = JobRecord(
    job=JOB,
    committer="two_phase",
    publication="upload",
    mode=SaveMode.APPEND,
    base_seq=4,
    started_at_s=1.5,
    details={"schema": "{}", "partition_by": ["ü b"]},
)

counts = st.integers(0, 2**40)
texts = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


def file_entries() -> st.SearchStrategy[FileEntry]:
    def upload(number: int, value: str, rows: int, parts: list[tuple[str, int]]) -> FileEntry:
        path = f"p={value}/{file_name(OWNER, number, '.parquet')}"
        size = sum(part[1] for part in parts)
        return FileEntry(path=path, size_bytes=size, rows=rows, upload_id="u", parts=tuple(parts))

    def renamed(number: int, value: str, rows: int, size: int) -> FileEntry:
        path = f"p={value}/{file_name(OWNER, number, '.csv')}"
        return FileEntry(path=path, size_bytes=size, rows=rows, source=attempt_file_path(JOB, 3, ATTEMPT, path))

    parts = st.lists(st.tuples(st.text(max_size=4), counts), min_size=1, max_size=3)
    numbers = st.integers(0, 99)
    return st.one_of(
        st.builds(upload, numbers, texts, counts, parts), st.builds(renamed, numbers, texts, counts, counts)
    )


def encoded(files: tuple[FileEntry, ...]) -> tuple[ManifestRef, bytes]:
    data = two_phase_records.encode_manifest(
        TaskManifest(job=JOB, task=3, attempt=ATTEMPT, files=files, statistics=STATISTICS)
    )
    totals = Totals(files=len(files))
    return ManifestRef(key=manifest_path(JOB, 3, ATTEMPT), sha256=codec.sha256_hex(data), task=3, totals=totals), data


@given(st.lists(file_entries(), max_size=4))
def test_manifest_round_trip(files: list[FileEntry]) -> None:
    """Also with newlines, quotes and all of Unicode in partition values (HADOOP-17112: paths do contain spaces)."""
    ref, data = encoded(tuple(files))
    assert two_phase_records.decode_manifest(ref, data).files == tuple(files)


ONE = FileEntry(path=file_name(OWNER, 0, ".csv"), size_bytes=3, upload_id="u", parts=(("e", 3),))


def test_manifest_with_any_byte_changed_is_refused() -> None:
    ref, data = encoded((ONE,))
    for index in range(len(data)):
        broken = data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]
        with pytest.raises(CorruptDataError, match="its bytes are kept"):
            two_phase_records.decode_manifest(ref, broken)
    with pytest.raises(CorruptDataError):
        two_phase_records.decode_manifest(ref, data[:-1])


def hostile_files() -> dict[str, FileEntry]:
    name = file_name(OWNER, 0, ".csv")
    other_job = FileOwner(JobId("20261121093853123-ffffffffffff"), 3, ATTEMPT)
    replaced = dataclasses.replace
    return {
        "climbs out": replaced(ONE, path=f"../{name}"),
        "climbs in the middle": replaced(ONE, path=f"a/../../{name}"),
        "absolute": replaced(ONE, path=f"/{name}"),
        "into our folder": replaced(ONE, path=f"_holdfast/log/{name}"),
        "hidden": replaced(ONE, path=f".x/{name}"),
        "empty segment": replaced(ONE, path=f"a//{name}"),
        "NUL": replaced(ONE, path=f"a\0/{name}"),
        "another job's": replaced(ONE, path=file_name(other_job, 0, ".csv")),
        "no upload": replaced(ONE, upload_id=""),
        "no parts": replaced(ONE, parts=()),
        "parts do not add up": replaced(ONE, parts=(("e", 2),)),
        "negative size": replaced(ONE, size_bytes=-1, parts=(("e", -1),)),
        "too many parts": replaced(ONE, size_bytes=0, parts=(("e", 0),) * 10_001),
        "source of another": replaced(ONE, source=attempt_file_path(other_job.job, 3, ATTEMPT, name)),
        "source outside": replaced(ONE, source="../../etc/passwd"),
    }


@pytest.mark.parametrize("what", hostile_files())
def test_manifest_with_a_hostile_file_is_refused(what: str) -> None:
    """A valid digest does not make a path valid: no record may name anything outside the destination."""
    ref, data = encoded((hostile_files()[what],))
    with pytest.raises(CorruptDataError):
        two_phase_records.decode_manifest(ref, data)


def entry(**changes: object) -> LogEntry:
    base = LogEntry(
        seq=5,
        kind=Kind.COMMIT,
        record=RECORD,
        token="t",
        after="s",
        decided_at_s=2.5,
        totals=Totals(files=1, size_bytes=2, rows=3),
        tasks=1,
        manifests=ListRef(key=f"_holdfast/jobs/{JOB}/committed-t.jsonl", sha256="0" * 64, count=1),
        replaced=ListRef(key=f"_holdfast/jobs/{JOB}/replaced-t.jsonl", sha256="1" * 64, count=7),
        replaced_by_job={"20261121093853123-ffffffffffff": (1, 2)},
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]  # names are fields


def test_log_entry_round_trip() -> None:
    empty = {"20261121093853123-ffffffffffff": (1, 0)}
    for value in (
        entry(),
        entry(replaced_by_job=empty),
        entry(kind=Kind.ABORT, manifests=None, replaced=None, replaced_by_job={}),
    ):
        assert two_phase_records.decode_entry(log_entry_path(5), 5, two_phase_records.encode_entry(value)) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "holdfast-log/2"),
        ("format", None),
        ("seq", 6),
        ("seq", True),
        ("kind", "maybe"),
        ("job", "../../x"),
        ("mode", "destroy"),
        ("publication", "carrier pigeon"),
        ("base_seq", -1),
        ("base_seq", 1e308),
        ("decided_at_s", "now"),
        ("decided_at_s", 1e300),
        ("token", ""),
        ("files", "7"),
        ("manifests", None),
        ("manifests", {"key": "../x", "sha256": "0" * 64, "count": 1}),
        ("manifests", {"key": "_holdfast/jobs/../../x", "sha256": "0" * 64, "count": 1}),
        ("manifests", {"key": "_holdfast/jobs/x", "sha256": "zz", "count": 1}),
        ("replaced", []),
        ("replaced_by_job", []),
        ("replaced_by_job", {"a": 1}),
        ("replaced_by_job", {"20261121093853123-ffffffffffff": [1, -2]}),
        ("replaced_by_job", {"20261121093853123-ffffffffffff": ["1", 2]}),
        ("replaced_by_job", {"no job": [1, 2]}),
        ("details", "text"),
    ],
)
def test_log_entry_with_a_wrong_field_is_refused(name: str, value: object) -> None:
    fields = json.loads(two_phase_records.encode_entry(entry()))
    assert name in fields
    with pytest.raises(CorruptDataError, match="its bytes are kept"):
        two_phase_records.decode_entry(log_entry_path(5), 5, json.dumps(fields | {name: value}).encode())


def test_unknown_fields_of_a_later_version_are_ignored() -> None:
    fields = json.loads(two_phase_records.encode_entry(entry())) | {"colour": "blue"}
    assert two_phase_records.decode_entry(log_entry_path(5), 5, json.dumps(fields).encode()) == entry()


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"{", b"\xff\xfe", b"\xef\xbb\xbf{}", b"[" * 100_000, b"NaN"])
def test_no_record_at_all_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptDataError):
        two_phase_records.decode_entry(log_entry_path(5), 5, data)
    with pytest.raises(CorruptDataError):
        codec.decode_job(f"_holdfast/jobs/{JOB}/job.json", data)


def test_job_record_round_trip_and_place() -> None:
    data = codec.encode_job(RECORD)
    assert codec.decode_job(f"x/_holdfast/jobs/{JOB}/job.json", data) == RECORD
    with pytest.raises(CorruptDataError):
        codec.decode_job("_holdfast/jobs/20261121093853123-ffffffffffff/job.json", data)


@pytest.mark.parametrize("path", ["../x", "a/../../x", "_holdfast/log/1.json", "_SUCCESS", ".x/y"])
def test_replaced_list_never_names_what_is_not_output(path: str) -> None:
    """A tampered list of replaced files must not delete the log, or anything outside."""
    data, _count = two_phase_records.encode_replaced_files([ReplacedFile(path=path, size_bytes=1)])
    ref = ListRef(key="_holdfast/jobs/x", sha256=codec.sha256_hex(data), count=1)
    with pytest.raises(CorruptDataError):
        list(two_phase_records.decode_replaced_files(ref, data))


def test_lists_are_pinned_by_digest() -> None:
    files = [ReplacedFile(path="a", size_bytes=1, etag="e"), ReplacedFile(path="b//c", size_bytes=2)]
    data, count = two_phase_records.encode_replaced_files(iter(files))
    ref = ListRef(key="_holdfast/jobs/x", sha256=codec.sha256_hex(data), count=2)
    assert (count, list(two_phase_records.decode_replaced_files(ref, data))) == (2, files)
    with pytest.raises(CorruptDataError):
        list(two_phase_records.decode_replaced_files(ref, data[:-1] + bytes([data[-1] ^ 1])))


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_a_list_that_cannot_be_unpacked_is_corrupt_although_its_digest_is_right(cut: int) -> None:
    data, count = two_phase_records.encode_replaced_files([ReplacedFile(path="a", size_bytes=1)])
    for broken in (data[:-cut], data[:12] + b"\xff" * 8 + data[20:]):
        ref = ListRef(key="_holdfast/jobs/x", sha256=codec.sha256_hex(broken), count=count)
        with pytest.raises(CorruptDataError):
            list(two_phase_records.decode_replaced_files(ref, broken))


def test_a_list_that_is_not_packed_is_read() -> None:
    data = b'{"path":"a","bytes":1,"etag":"e"}\n'
    ref = ListRef(key="_holdfast/jobs/x", sha256=codec.sha256_hex(data), count=1)
    assert list(two_phase_records.decode_replaced_files(ref, data)) == [ReplacedFile(path="a", size_bytes=1, etag="e")]


def test_equal_lists_are_equal_bytes_and_small() -> None:
    """A million files need about ten megabytes."""
    files = [
        ReplacedFile(path=f"part-{n // 10:05}-20261122000000000-0123456789ab-{n // 10:012x}-{n % 10:05}", size_bytes=n)
        for n in range(10_000)
    ]
    data, count = two_phase_records.encode_replaced_files(files)
    assert two_phase_records.encode_replaced_files(iter(files)) == (data, count)
    assert len(data) < 20 * count
