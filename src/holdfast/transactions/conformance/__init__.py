"""Check that a transaction database keeps the promises of its protocols.

Used by Holdfast's tests for each of its backends, and by packages that add one.

Worked composition, without a test framework::

    report = run_conformance(MyBackend(), MyBackend())
    print(report)
    assert report.passed

Declare a known deviation: ``deviations={"check_value_limits": "accepts values of 1 MiB at most"}``. A check with a
declared deviation still runs; if it passes, the run fails, so that declarations stay up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from holdfast.conformance import Check, ConformanceError, Report, checks_in, run_checks
from holdfast.transactions.base import Backend
from holdfast.transactions.conformance import groups, lasting, limits, locks, model, races, reads, writes
from holdfast.transactions.conformance.subject import Subject

__all__ = [
    "TOPICS",
    "Check",
    "ConformanceError",
    "Report",
    "Subject",
    "Topic",
    "checks_for",
    "run_conformance",
    "subject_of",
]


@dataclass(frozen=True, slots=True)
class Topic:
    """A group of checks.

    Attributes:
        name: a few words for a report.
        module: the module with the checks.
        otherwise: the consequence for users if one of the checks fails.
        method: the method that a backend needs for the checks, if not all have it.
    """

    name: str
    module: ModuleType
    otherwise: str
    method: str = ""


TOPICS = (
    Topic("reads, absence, ranges", reads, "transactions see wrong records, or do not notice what has changed"),
    Topic("writes, series", writes, "commits have other effects than they were asked for, or take effect twice"),
    Topic("groups", groups, "a transaction fails, or takes effect, because of another one"),
    Topic("pairs, random commits", model, "some combination of conditions and writes is not treated as documented"),
    Topic("keys, values, sizes", limits, "records are lost or confused, or large transactions are refused"),
    Topic("races", races, "updates are lost, transactions act on states that never existed, or fail for no reason"),
    Topic("locked transactions", locks, "the pessimistic mode loses updates", method="locked"),
    Topic("lasting snapshots, flushes", lasting, "checks of all records report false damage", method="snapshot"),
)
"""Every check belongs to exactly one topic."""


def checks_for(backend: Backend | type[Backend]) -> list[Check[Subject]]:
    """Return the checks that a backend, or those of a class, must pass: those for methods that it has."""
    kind = backend if isinstance(backend, type) else type(backend)
    found: list[Check[Subject]] = []
    for topic in TOPICS:
        if not topic.method or getattr(kind, topic.method) is not getattr(Backend, topic.method):
            found += checks_in(topic.module)
    return found


def subject_of(
    check: Check[Subject],
    backend: Backend,
    other: Backend | None = None,
    *,
    prefix: bytes = b"conformance/",
    racers: Sequence[Backend] = (),
    rounds: int = 20,
) -> Subject:
    """Return what a check runs on: see `run_conformance`."""
    return Subject(backend, other or backend, prefix + check.name.encode() + b"/", racers, rounds)


def run_conformance(
    backend: Backend,
    other: Backend | None = None,
    *,
    prefix: bytes = b"conformance/",
    deviations: Mapping[str, str] | None = None,
    racers: Sequence[Backend] = (),
    rounds: int = 20,
    progress: Callable[[Check[Subject], int, int], None] = lambda _check, _done, _total: None,
) -> Report:
    """Run every check that a database must pass.

    Args:
        database: the database; the checks leave their records at keys that begin with `prefix`.
        other: another handle on the same data, with its own connections; None to use the same one.
        prefix: of the keys of the checks, which ends in a slash; no record may have such a key.
        deviations: known deviations: maps the name of a check to the reason.
        racers: handles for races, each with its own connections; if empty, eight threads share the two handles.
        rounds: how often each race (a conflict of concurrent transactions) is repeated.
        progress: called before each check, with the check, the number of checks done, and their total number.

    Raises:
        UnavailableError: the database stopped responding; the run is incomplete and proves nothing.
    """
    return run_checks(
        checks_for(backend),
        lambda check: subject_of(check, backend, other, prefix=prefix, racers=racers, rounds=rounds),
        lambda check: backend.get_many([prefix]),
        deviations=deviations,
        progress=progress,
    )
