"""Count operations and their durations in every process, and add them up for ``_SUCCESS``.

`Statistics` is a plain value that supports ``+``. Records and reports hold it as Hadoop's IOStatistics.

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
from holdfast.stores.interceptors import StoreCall, StoreOperation

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
class DurationStatistics:
    """Sums up the runs of one operation: their number, and their times in milliseconds; failed runs are included."""

    count: int
    failures: int
    total_ms: int
    min_ms: int
    max_ms: int

    def __add__(self, other: DurationStatistics) -> DurationStatistics:
        if not self.count or not other.count:
            return self if self.count else other
        return DurationStatistics(
            count=self.count + other.count,
            failures=self.failures + other.failures,
            total_ms=self.total_ms + other.total_ms,
            min_ms=min(self.min_ms, other.min_ms),
            max_ms=max(self.max_ms, other.max_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counters, gauges and durations. ``+`` adds counters and durations; for gauges, the right operand wins."""

    counters: Mapping[str, int] = field(default_factory=dict)
    gauges: Mapping[str, int] = field(default_factory=dict)
    durations: Mapping[str, DurationStatistics] = field(default_factory=dict)

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
    """A mutable `DurationStatistics`. Adds unrounded seconds, so that a thousand calls of 0.4 ms are 400 ms, not 0."""

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

    def duration(self) -> DurationStatistics:
        return DurationStatistics(
            self.count, self.failures, *(round(s * 1000) for s in (self.total_s, self.min_s, self.max_s))
        )


class StatisticsRecorder:
    """Collects statistics. Thread-safe.

    Args:
        clock: measures durations, with `elapsed_s`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counters: dict[str, int] = {}
        self._tallies: dict[str, _Tally] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add `by` to a counter."""
        with self._lock:
            self._counters[name] = self._counters.get(name, 0) + by

    @contextlib.contextmanager
    def time_block(self, name: str) -> Iterator[None]:
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
        with self.time_block(STORE_STATISTICS[call.operation.value]):
            result = proceed()
        if call.operation in (StoreOperation.PUT, StoreOperation.UPLOAD_PART):
            self.count("object_put_bytes", call.size_bytes)
        elif call.operation in (StoreOperation.DELETE, StoreOperation.DELETE_MANY):
            self.count("object_delete_objects", len(call.keys) or 1)
        return result

    def snapshot(self) -> Statistics:
        """Return the statistics collected so far."""
        with self._lock:
            return Statistics(
                counters=dict(self._counters),
                durations={name: tally.duration() for name, tally in self._tallies.items()},
            )


def encode_statistics(statistics: Statistics) -> dict[str, dict[str, Any]]:
    """Return the JSON object for ``iostatistics``, with all five of its maps."""
    durations = statistics.durations
    return {
        "counters": {
            **statistics.counters,
            **{name: duration.count for name, duration in durations.items()},
            **{f"{name}.failures": duration.failures for name, duration in durations.items()},
        },
        "gauges": dict(statistics.gauges),
        "minimums": {f"{name}.min": duration.min_ms for name, duration in durations.items()},
        "maximums": {f"{name}.max": duration.max_ms for name, duration in durations.items()},
        "meanstatistics": {
            f"{name}.mean": {"samples": duration.count, "sum": duration.total_ms}
            for name, duration in durations.items()
        },
    }


def decode_statistics(value: object) -> Statistics:
    """Decode an ``iostatistics`` object, which may be null. Inverse of `encode_statistics`.

    Hadoop times failures separately, as ``name.failures.mean``; here their times are added to the duration `name`.
    Minimums and maximums without samples are left out.

    Raises:
        ValueError: `value` is not such an object, so the record that contains it is damaged. The message says why.
    """
    if value is None:
        return NO_STATISTICS
    if not isinstance(value, dict):
        raise ValueError("iostatistics is not an object")
    counters, gauges = _parse_numbers(value, "counters"), _parse_numbers(value, "gauges")
    minimums, maximums = _parse_numbers(value, "minimums"), _parse_numbers(value, "maximums")
    durations: dict[str, DurationStatistics] = {}
    for key, samples, total_ms in _iter_means(value):
        name = key.removesuffix(".failures")
        mean_ms = total_ms // samples
        found = DurationStatistics(
            samples,
            0,
            total_ms,
            _known_extreme(minimums, f"{key}.min", mean_ms),
            _known_extreme(maximums, f"{key}.max", mean_ms),
        )
        durations[name] = durations[name] + found if name in durations else found
    for name, duration in durations.items():
        counters.pop(name, None)
        failures = min(counters.pop(f"{name}.failures", 0), duration.count)
        durations[name] = DurationStatistics(
            duration.count, failures, duration.total_ms, duration.min_ms, duration.max_ms
        )
    return Statistics(counters=counters, gauges=gauges, durations=durations)


def _known_extreme(extremes: Mapping[str, int], key: str, otherwise: int) -> int:
    found = extremes.get(key, -1)
    return found if found >= 0 else otherwise  # Hadoop's unset value is -1


def _iter_statistic_entries(value: dict[Any, Any], kind: str) -> Iterator[tuple[str, Any]]:
    found = value.get(kind)
    if found is None:
        return
    if not isinstance(found, dict) or len(found) > _MAX_NAMES:
        raise ValueError(f"{kind} are not an object of at most {_MAX_NAMES} names")
    yield from found.items()


def _check_number(key: str, found: object, least: int) -> int:
    if type(found) is not int or not least <= found < 2**63:
        raise ValueError(f"statistic {key} is not an integer from {least} to 2**63 - 1")
    return found


def _parse_numbers(value: dict[Any, Any], kind: str) -> dict[str, int]:
    least = 0 if kind == "counters" else -(2**63)
    return {key: _check_number(key, found, least) for key, found in _iter_statistic_entries(value, kind)}


def _iter_means(value: dict[Any, Any]) -> Iterator[tuple[str, int, int]]:
    """List every mean that has samples, as (name, samples, sum)."""
    for key, found in _iter_statistic_entries(value, "meanstatistics"):
        if not isinstance(found, dict):
            raise ValueError(f"mean {key} is not an object")
        samples, total = _check_number(key, found.get("samples"), 0), _check_number(key, found.get("sum"), -(2**63))
        if samples:
            yield key.removesuffix(".mean"), samples, max(total, 0)
