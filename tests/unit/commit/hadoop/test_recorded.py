"""Test Holdfast's decoders on records that Hadoop 3.5.0 and 3.4.1 wrote, byte for byte (recorded/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.commit.hadoop.magic.files import pendingset_path
from holdfast.commit.hadoop.pending import decode_pending, decode_pendingset, encode_pending, encode_pendingset
from holdfast.commit.ids import JobId
from holdfast.commit.success_file import parse_success_file

_RECORDED = Path(__file__).parent / "recorded"
_RELEASES = ("3.5.0", "3.4.1")
_JOB = "3b1f9c0e-5a77-4c3d-9c55-0d5c8f7e1a2b"
_SET = "task_20261122101112_0007_m_000000.pendingset"
_OWN = ("holdfast.part.sizes", "holdfast.rows")


def _bytes(release: str, name: str) -> bytes:
    return (_RECORDED / release / name).read_bytes()


def _without_statistics(data: bytes) -> Any:
    """Return what of a record decides what a job commit does, with etags as objects."""
    value = json.loads(data)
    for one in (value, *value.get("commits", ())):
        for name in ("filename", "created", "saved", "date", "text"):
            one.pop(name, None)
        if "etags" in one:
            nothing = {"checksumAlgorithm": None, "checksum": None}
            one["etags"] = [{**nothing, "etag": tag} if isinstance(tag, str) else tag for tag in one["etags"]]
        one["iostatistics"] = {}
        one["extraData"] = {name: text for name, text in one.get("extraData", {}).items() if name not in _OWN}
    return value


@pytest.mark.parametrize("release", _RELEASES)
def test_a_set(release: str) -> None:
    data = _bytes(release, _SET)
    found = decode_pendingset(_SET, data, bucket="bucket", prefix="out put/", job_id=_JOB)
    assert {one.key: (one.size_bytes, len(one.parts)) for one in found.commits} == {
        "out put/year=2026/a b.csv": (5, 1),
        "out put/large.bin": (6 << 20, 2),
        "out put/empty.csv": (0, 1),
    }
    assert {one.job_id for one in found.commits} == {_JOB}
    assert {one.task_id for one in found.commits} == {"attempt_20261122101112_0007_m_000000_0"}
    assert found.statistics.durations["multipart_upload_part_put"].count == 4
    assert _without_statistics(encode_pendingset(found)) == _without_statistics(data)


@pytest.mark.parametrize("release", _RELEASES)
def test_a_set_of_nothing(release: str) -> None:
    name = _SET.replace("000000", "000002")
    found = decode_pendingset(name, _bytes(release, name), bucket="bucket", prefix="out put/", job_id=_JOB)
    assert found.commits == ()


@pytest.mark.parametrize("release", _RELEASES)
def test_a_set_of_staging_names_no_job(release: str) -> None:
    name = "staging-task_20261122101112_0007_m_000000"
    found = decode_pendingset(name, _bytes(release, name), bucket="bucket", prefix="staged/", job_id="anybody's")
    (one,) = found.commits
    assert one.key == "staged/year=2026/x-7f4e2d10-88a1-4e0b-a6a2-c1d2e3f40516.csv"
    assert one.job_id == ""


@pytest.mark.parametrize("release", _RELEASES)
def test_a_single_upload(release: str) -> None:
    data = _bytes(release, "late.csv.pending")
    found = decode_pending("late.csv.pending", data, bucket="bucket", prefix="out put/", job_id=_JOB)
    assert (found.key, found.size_bytes, found.job_id) == ("out put/late.csv", 5, "")
    assert _without_statistics(encode_pending(found)) == _without_statistics(data)


@pytest.mark.parametrize("release", _RELEASES)
def test_a_report(release: str) -> None:
    report = parse_success_file("_SUCCESS", _bytes(release, "_SUCCESS"))
    assert (report["committer"], report["jobId"], report["success"]) == ("magic", _JOB, True)
    names = report["filenames"]
    assert isinstance(names, list) and len(names) == 3 and all(name.startswith("/out put/") for name in names)


@pytest.mark.parametrize("release", _RELEASES)
def test_our_magic_directory_is_laid_out_as_hadoops(release: str) -> None:
    """A Holdfast job has its sets and attempts where Hadoop's would have them, under the job's id."""
    ours = f"out put/{pendingset_path(JobId(_JOB), 0)}".replace(f"task_{_JOB}_m", "task_20261122101112_0007_m")
    assert ours in _bytes(release, "listing.txt").decode().splitlines()
