"""Count operations and their durations in every process, and add them up for ``_SUCCESS``.

`Statistics` is a plain value that supports ``+``; `hadoop.statistics` converts it to Hadoop's IOStatistics and back.

Example::

    recorder = Recorder(clock)
    store = InterceptedStore(store, recorder.observed)
    with recorder.timed("job_stage_rename_files"):
        recorder.count("committer_files_committed")
    total = sum((task.statistics for task in tasks), recorder.snapshot())
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from holdfast.runtime import Clock
from holdfast.stores.interceptors import Operation, StoreCall

T = TypeVar("T")

_MAX_NAMES = 10_000  # per kind; Hadoop itself defines a few hundred

STORE_STATISTICS: Mapping[str, str] = {
    "put": "object_put_request",
    "get": "action_http_get_request",
    "head": "object_metadata_request",
    "list_page": "object_list_request",
    "delete": "object_delete_request",
    "delete_many": "object_bulk_delete_request",
    "copy": "object_copy_requests",
    "create_upload": "object_multipart_initiated",
    "upload_part": "multipart_upload_part_put",
    "complete_upload": "multipart_upload_completed",
    "abort_upload": "object_multipart_aborted",
    "list_uploads_page": "multipart_upload_list",
    "open_write": "op_create",
    "rename": "op_rename",
    "rename_dir": "op_rename_dir",
    "check_targets": "op_check_targets",
    "apply": "op_apply",
    "file.write": "file_write",
    "file.close": "file_close",
    "file.discard": "file_discard",
}
"""The statistic of each call of the store protocols, with the names of Hadoop's StoreStatisticNames. The names
``op_rename_dir``, ``op_check_targets``, ``op_apply`` and ``file_…`` are Holdfast's own, because Hadoop has none for
these calls.
"""


@dataclass(frozen=True, slots=True)
class Duration:
    """How often an operation ran and how long it took, in milliseconds; failed runs are included."""

    count: int
    failures: int
    total_ms: int
    min_ms: int
    max_ms: int

    @property
    def mean_ms(self) -> float:
        return self.total_ms / self.count if self.count else 0.0

    def __add__(self, other: Duration) -> Duration:
        if not self.count or not other.count:
            return self if self.count else other
        return Duration(
            count=self.count + other.count,
            failures=self.failures + other.failures,
            total_ms=self.total_ms + other.total_ms,
            min_ms=min(self.min_ms, other.min_ms),
            max_ms=max(self.max_ms, other.max_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counters, gauges and durations. ``+`` adds counters and durations; of two gauges, the second counts."""

    counters: Mapping[str, int] = field(default_factory=dict)
    gauges: Mapping[str, int] = field(default_factory=dict)
    durations: Mapping[str, Duration] = field(default_factory=dict)

    def __add__(self, other: Statistics) -> Statistics:
        counters, durations = dict(self.counters), dict(self.durations)
        for name, value in other.counters.items():
            counters[name] = counters.get(name, 0) + value
        for name, duration in other.durations.items():
            durations[name] = durations[name] + duration if name in durations else duration
        return Statistics(counters=counters, gauges={**self.gauges, **other.gauges}, durations=durations)


NO_STATISTICS = Statistics()
"""Statistics of nothing: the start value of a sum."""


class _Tally:
    """A mutable `Duration`. Adds up unrounded seconds, so that a thousand calls of 0.4 ms are 400 ms, not 0."""

    def __init__(self) -> None:
        self.count = self.failures = 0
        self.total_s = self.max_s = 0.0
        self.min_s = float("inf")

    def add(self, spent_s: float, failed: bool) -> None:
        self.count += 1
        self.failures += failed
        self.total_s += spent_s
        self.min_s = min(self.min_s, spent_s)
        self.max_s = max(self.max_s, spent_s)

    def duration(self) -> Duration:
        return Duration(self.count, self.failures, *(round(s * 1000) for s in (self.total_s, self.min_s, self.max_s)))


class Recorder:
    """Collects statistics. Thread-safe.

    Args:
        clock: measures durations, with `elapsed_s`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counters: dict[str, int] = {}
        self._gauges: dict[str, int] = {}
        self._tallies: dict[str, _Tally] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add `by` to a counter."""
        with self._lock:
            self._counters[name] = self._counters.get(name, 0) + by

    def gauge(self, name: str, value: int) -> None:
        """Set a gauge."""
        with self._lock:
            self._gauges[name] = value

    @contextlib.contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a ``with`` block; an error that leaves the block counts as a failure."""
        started_s = self._clock.elapsed_s()
        failed = True
        try:
            yield
            failed = False
        finally:
            spent_s = self._clock.elapsed_s() - started_s
            with self._lock:
                self._tallies.setdefault(name, _Tally()).add(spent_s, failed)

    def observed(self, call: StoreCall, proceed: Callable[[], T]) -> T:
        """Intercept a store call: time it under its name in `STORE_STATISTICS`, and count its bytes or objects."""
        with self.timed(STORE_STATISTICS[call.operation.value]):
            result = proceed()
        if call.operation in (Operation.PUT, Operation.UPLOAD_PART):
            self.count("object_put_bytes", call.size_bytes)
        elif call.operation in (Operation.DELETE, Operation.DELETE_MANY):
            self.count("object_delete_objects", len(call.keys) or 1)
        return result

    def snapshot(self) -> Statistics:
        """Return the statistics collected so far."""
        with self._lock:
            return Statistics(
                counters=dict(self._counters),
                gauges=dict(self._gauges),
                durations={name: tally.duration() for name, tally in self._tallies.items()},
            )


def compact(statistics: Statistics) -> dict[str, object]:
    """Return `statistics` as a JSON value for Holdfast's manifests; kinds without entries are left out."""
    value: dict[str, dict[str, Any]] = {
        "counters": dict(statistics.counters),
        "gauges": dict(statistics.gauges),
        "durations": {
            name: [d.count, d.failures, d.total_ms, d.min_ms, d.max_ms] for name, d in statistics.durations.items()
        },
    }
    return {kind: entries for kind, entries in value.items() if entries}


def from_compact(value: object) -> Statistics:
    """Decode the statistics that `compact` encoded.

    Raises:
        ValueError: the value is invalid, so the record that contains it is damaged; the message says why.
    """
    if not isinstance(value, dict):
        raise ValueError("statistics are not an object")
    return Statistics(
        counters={name: _count(name, found) for name, found in _entries(value, "counters")},
        gauges={name: _number(name, found) for name, found in _entries(value, "gauges")},
        durations={name: _duration(name, found) for name, found in _entries(value, "durations")},
    )


def _entries(value: dict[Any, Any], kind: str) -> Iterator[tuple[str, object]]:
    found = value.get(kind, {})
    if not isinstance(found, dict) or len(found) > _MAX_NAMES:
        raise ValueError(f"{kind} are not an object of at most {_MAX_NAMES} names")
    for name, entry in found.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"{kind} contain an entry without a name")
        yield name, entry


def _number(name: str, found: object) -> int:
    if type(found) is not int or not -(2**63) <= found < 2**63:
        raise ValueError(f"statistic {name} is not a whole number")
    return found


def _count(name: str, found: object) -> int:
    if (number := _number(name, found)) < 0:
        raise ValueError(f"statistic {name} is negative")
    return number


def _duration(name: str, found: object) -> Duration:
    if not isinstance(found, list) or len(found) != 5:
        raise ValueError(f"duration {name} is not five numbers")
    duration = Duration(*(_count(name, number) for number in found))
    if duration.failures > duration.count or duration.min_ms > duration.max_ms:
        raise ValueError(f"duration {name} contradicts itself")
    return duration
