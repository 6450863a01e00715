"""What the demo tells a driver to do."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DriverTask"]


@dataclass(frozen=True)
class DriverTask:
    """One write by one driver.

    Attributes:
        source: the CSV file.
        url: destination.
        endpoint: of the S3 server, or of the proxy before it.
        events: file to append to.
        work: directory for Spark's own files.
        marks: directory for marks of faults; None to inject none.
    """

    source: str
    url: str
    endpoint: str
    events: str
    work: str
    marks: str | None = None
