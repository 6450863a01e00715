"""Define what `holdfast.write` and `holdfast.job` return."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.commit import JobOutcome


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """The result of a write or a job.

    Attributes:
        url: the destination.
        job: the job's id; None if mode ``ignore`` found data and nothing was written.
        files, bytes: number and total size of the committed files.
        rows: number of the committed rows; 0 if it is unknown: for files of `holdfast.job`, and for a committer without
            a log if its ``_SUCCESS`` is missing or was replaced.
        finished: False if work after the commit is pending. The data is safe; ``holdfast recover`` finishes the work.
    """

    url: str
    job: str | None
    files: int = 0
    bytes: int = 0
    rows: int = 0
    finished: bool = True

    @classmethod
    def of(cls, url: str, committed: JobOutcome) -> JobResult:
        """Build the result of a committed job."""
        totals = committed.totals
        return cls(
            url=url,
            job=committed.job,
            files=totals.files,
            bytes=totals.size_bytes,
            rows=totals.rows,
            finished=committed.finished,
        )
