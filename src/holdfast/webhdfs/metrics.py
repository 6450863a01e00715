"""Count what a server does, for Prometheus. The processes of a server share their counters in files."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

REQUESTS = Counter("holdfast_requests_total", "Requests by operation and status of HTTP.", ["operation", "status"])
SECONDS = Histogram("holdfast_request_seconds", "Time to answer.", ["operation"], buckets=_BUCKETS)
BYTES = Counter("holdfast_file_bytes_total", "Bytes of files.", ["direction"])
REPEATS = Counter("holdfast_repeats_total", "Requests that came again and were recognized.", ["operation"])
CUT_UPLOADS = Counter("holdfast_cut_uploads_total", "Uploads that had no end, and left nothing.")
REFUSED = Counter("holdfast_refused_total", "Requests for which the server had no room.", ["what"])
CONNECTIONS = Gauge("holdfast_connections", "Open connections.", multiprocess_mode="livesum")
IN_FLIGHT = Gauge("holdfast_requests_in_flight", "Requests that are not answered.", multiprocess_mode="livesum")
UPLOADS = Gauge("holdfast_uploads", "Files that are being received.", multiprocess_mode="livesum")
LEADS = Gauge("holdfast_leads", "Whether this server does the background work.", multiprocess_mode="livemax")
COLLECTED = Counter("holdfast_collected_total", "What the background work has removed.", ["kind"])
DUTY_FAILURES = Counter("holdfast_duty_failures_total", "Rounds of the background work that failed.", ["duty"])

NO_OPERATION = "-"
"""The operation of what is not WebHDFS, and of what names none."""

_children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}  # `labels` costs more than to count


def note_request(operation: str, status: int, seconds: float) -> None:
    """Count a request.

    Args:
        status: of HTTP; 0 for no answer.
    """
    children = _children.get((operation, status))
    if children is None:
        counter = REQUESTS.labels(operation, status or "none")
        children = _children[operation, status] = (counter, SECONDS.labels(operation))
    children[0].inc()
    children[1].observe(seconds)


def count_requests() -> int:
    """Return how many requests of WebHDFS this process has answered."""
    samples = (one for family in REQUESTS.collect() for one in family.samples if one.name.endswith("_total"))
    return int(sum(one.value for one in samples if one.labels["operation"] != NO_OPERATION))


def render_metrics(directory: str) -> bytes:
    """Return the counters of all processes of this server, in Prometheus' text format.

    Args:
        directory: where the processes keep them; empty if there is only this one.
    """
    if not directory:
        return generate_latest()
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=directory)  # type: ignore[no-untyped-call]  # the library has no types there
    return generate_latest(registry)
