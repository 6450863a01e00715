"""Test the names of a job's files below ``_temporary``."""

from __future__ import annotations

import pytest

from holdfast.commit.hadoop.file_output.directories import job_record_path, parse_job_record_path
from holdfast.commit.ids import JobId
from holdfast.commit.records import JobRecord, SaveMode

JOB = JobId("20270115080000000-00000000000a")


def test_a_record_names_its_job_and_committer() -> None:
    job = JobRecord(job=JOB, committer="file-v1", mode=SaveMode.APPEND, started_at_s=0.0)
    assert parse_job_record_path(job_record_path(job)) == (JOB, "file-v1")


@pytest.mark.parametrize(
    "path",
    [
        "_temporary/0/job_1-2.file-v1.json",  # no job id of Holdfast's
        f"_temporary/1/job_{JOB}.file-v1.json",
        f"x/_temporary/0/job_{JOB}.file-v1.json",
        f"_temporary/0/job_{JOB}.file-v1.json.tmp",
        f"_temporary/0/task_{JOB}.file-v1.json",
    ],
)
def test_other_files_are_no_records(path: str) -> None:
    assert parse_job_record_path(path) is None
