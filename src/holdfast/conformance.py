"""Define what conformance suites share: checks, their assertions, and the report of a run.

A suite is a set of checks that every implementation of an interface must pass. `holdfast.stores.conformance` is one;
that of the databases of transactions is in the tests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Generic, TypeVar

from holdfast.errors import HoldfastError, UnavailableError

S = TypeVar("S")
T = TypeVar("T")


class ConformanceError(AssertionError):
    """An implementation breaks a promise of its interface."""


@dataclass(frozen=True, slots=True)
class Check(Generic[S]):
    """A test of one promise that an implementation must keep.

    Attributes:
        name: unique; for reports and declared deviations.
        run: raises `ConformanceError`, or one of the implementation's errors, if it breaks the promise.
        needs: a check that must pass first. If it fails, this check is skipped, because it would leave data that cannot
            be deleted.
    """

    name: str
    run: Callable[[S], None]
    needs: str = ""


def checks_in(module: ModuleType) -> list[Check[S]]:
    """Return the checks of a module: its functions whose names begin with ``check_``."""
    functions = vars(module).items()
    return [Check(name, function) for name, function in functions if name.startswith("check_")]


# --- assertions -------------------------------------------------------------------------------------------------------
def expect(condition: bool, what: str) -> None:
    """Raise `ConformanceError` unless a condition holds; `what` describes the condition."""
    if not condition:
        raise ConformanceError(what)


def equal(actual: T, expected: T, what: str) -> None:
    """Raise `ConformanceError` unless two values are equal."""
    if actual != expected:
        raise ConformanceError(f"{what}: expected {_shorten_repr(expected)}, found {_shorten_repr(actual)}")


def refused(error: type[HoldfastError], call: Callable[[], object], what: str) -> None:
    """Raise `ConformanceError` unless a call raises this type of error."""
    try:
        call()
    except error:
        return
    raise ConformanceError(f"{what}: expected {error.__name__}, but the call succeeded")


def _shorten_repr(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 200 else f"{shown[:200]}… ({len(shown)} characters)"


# --- runs -------------------------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The result of a run of checks.

    Attributes:
        results: maps the name of each check to its error, or to None if the check passed.
        deviations: the declared deviations: maps the name of a check to the reason.
    """

    results: Mapping[str, Exception | None]
    deviations: Mapping[str, str]

    @property
    def passed(self) -> bool:
        """Whether exactly the checks with declared deviations failed."""
        return {name for name, error in self.results.items() if error is not None} == set(self.deviations)

    def __str__(self) -> str:
        return "\n".join(self._describe_result(name, error) for name, error in self.results.items())

    def _describe_result(self, name: str, error: Exception | None) -> str:
        reason = self.deviations.get(name)
        if error is None:
            return (
                f"ok       {name}"
                if reason is None
                else f"FAILED   {name}: passes, despite the declared deviation: {reason}"
            )
        return f"FAILED   {name}: {error}" if reason is None else f"deviates {name}: {reason}"


def run_checks(
    checks: Sequence[Check[S]],
    subject_of: Callable[[Check[S]], S],
    probe: Callable[[Check[S]], object],
    *,
    deviations: Mapping[str, str] | None = None,
    progress: Callable[[Check[S], int, int], None] = lambda _check, _done, _total: None,
) -> Report:
    """Run checks, and record the error of each that fails.

    Args:
        subject_of: returns what a check runs on.
        probe: called after a check that ended with `UnavailableError`; raises it if the implementation is gone.
        deviations: known deviations: maps the name of a check to the reason.
        progress: called before each check, with the check, the number of checks done, and their total number.

    Raises:
        UnavailableError: the implementation stopped responding; the run is incomplete and proves nothing.
    """
    results: dict[str, Exception | None] = {}
    for number, check in enumerate(checks):
        progress(check, number, len(checks))
        if results.get(check.needs) is not None:
            results[check.name] = ConformanceError(f"skipped: {check.needs} failed")
            continue
        try:
            check.run(subject_of(check))
        except Exception as error:  # noqa: BLE001  # any error is a result, and the run continues
            results[check.name] = error
            if isinstance(error, UnavailableError):
                probe(check)
        else:
            results[check.name] = None
    return Report(results, deviations or {})
