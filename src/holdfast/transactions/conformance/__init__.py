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

from holdfast.conformance import Check, ConformanceError, Report, checks_in, run_checks
from holdfast.transactions.base import Backend
from holdfast.transactions.conformance import limits, locks, model, races, reads, writes
from holdfast.transactions.conformance.subject import Subject

__all__ = [
    "Check",
    "ConformanceError",
    "Report",
    "Subject",
    "checks_for",
    "run_conformance",
    "subject_of",
]


_MODULES = (reads, writes, model, limits, races, locks)


def checks_for(backend: Backend | type[Backend]) -> list[Check[Subject]]:
    """Return the checks that a backend, or those of a class, must pass: those of `locks` if it has `locked`."""
    kind = backend if isinstance(backend, type) else type(backend)
    found: list[Check[Subject]] = []
    for module in _MODULES:
        if module is not locks or kind.locked is not Backend.locked:
            found += checks_in(module)
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
