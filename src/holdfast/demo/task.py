"""Describe what a driver of the demo does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DriverTask:
    """One write by one driver.

    Attributes:
        source: the CSV file.
        url: the destination.
        endpoint: endpoint of the S3 server, or of the proxy in front of it.
        events: file to which the driver appends its events.
        work: directory for Spark's own files.
        marks: directory in which injected faults are recorded; None to inject none.
    """

    source: str
    url: str
    endpoint: str
    events: str
    work: str
    marks: str | None = None
