"""Encode and decode statistics as Hadoop's IOStatistics: the ``iostatistics`` of ``_SUCCESS``, uploads and manifests.

Hadoop spreads a duration over four maps: ``name`` and ``name.failures`` among the counters, and ``name.min``,
``name.max`` and ``name.mean`` (samples and sum) in one separate map each. Times are in milliseconds.

Source: Hadoop's IOStatisticsSnapshot and StoreStatisticNames; facts checked against what Hadoop 3.5.0 writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.commit.statistics import NO_STATISTICS, Duration, Statistics

_MAX_NAMES = 10_000  # in one map; Hadoop itself defines a few hundred


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
    counters, gauges = _numbers(value, "counters"), _numbers(value, "gauges")
    minimums, maximums = _numbers(value, "minimums"), _numbers(value, "maximums")
    durations: dict[str, Duration] = {}
    for key, samples, total_ms in _means(value):
        name = key.removesuffix(".failures")
        mean_ms = total_ms // samples
        found = Duration(
            samples, 0, total_ms, _known(minimums, f"{key}.min", mean_ms), _known(maximums, f"{key}.max", mean_ms)
        )
        durations[name] = durations[name] + found if name in durations else found
    for name, duration in durations.items():
        counters.pop(name, None)
        failures = min(counters.pop(f"{name}.failures", 0), duration.count)
        durations[name] = Duration(duration.count, failures, duration.total_ms, duration.min_ms, duration.max_ms)
    return Statistics(counters=counters, gauges=gauges, durations=durations)


def _known(extremes: Mapping[str, int], key: str, otherwise: int) -> int:
    found = extremes.get(key, -1)
    return found if found >= 0 else otherwise  # Hadoop's unset value is -1


def _entries(value: dict[Any, Any], kind: str) -> Iterator[tuple[str, Any]]:
    found = value.get(kind)
    if found is None:
        return
    if not isinstance(found, dict) or len(found) > _MAX_NAMES:
        raise ValueError(f"{kind} are not an object of at most {_MAX_NAMES} names")
    yield from found.items()


def _number(key: str, found: object, least: int) -> int:
    if type(found) is not int or not least <= found < 2**63:
        raise ValueError(f"statistic {key} is not a number")
    return found


def _numbers(value: dict[Any, Any], kind: str) -> dict[str, int]:
    least = 0 if kind == "counters" else -(2**63)
    return {key: _number(key, found, least) for key, found in _entries(value, kind)}


def _means(value: dict[Any, Any]) -> Iterator[tuple[str, int, int]]:
    """List every mean that has samples, as (name, samples, sum)."""
    for key, found in _entries(value, "meanstatistics"):
        if not isinstance(found, dict):
            raise ValueError(f"mean {key} is not an object")
        samples, total = _number(key, found.get("samples"), 0), _number(key, found.get("sum"), -(2**63))
        if samples:
            yield key.removesuffix(".mean"), samples, max(total, 0)
