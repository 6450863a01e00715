"""Check that a store keeps the promises of its protocols. Used by Holdfast's tests and by packages that add a store.

Worked composition, without a test framework::

    report = run_conformance(MyStore(), prefix="conformance")
    print(report)
    assert report.passed

Declare a server's known deviations: ``deviations={"check_small_part": "accepts parts of any size"}``. A check with a
declared deviation still runs; if it passes, the run fails, so that declarations stay up to date.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType

from holdfast.errors import UnavailableError
from holdfast.stores.base import Capabilities, ObjectStore, Support
from holdfast.stores.conformance import (
    conditions,
    crowds,
    directories,
    objects,
    races,
    renames,
    transactions,
    uploads,
)
from holdfast.stores.conformance.keys import KEY_CHECKS, LISTED_UPLOAD_CHECKS, ODD_KEYS
from holdfast.stores.conformance.subject import Check, ConformanceError, Subject

__all__ = ["ODD_KEYS", "Check", "ConformanceError", "Report", "Subject", "checks_for", "run_conformance"]


def _checks_in(module: ModuleType) -> list[Check]:
    functions = vars(module).items()
    return [Check(name, function) for name, function in functions if name.startswith("check_")]


def checks_for(capabilities: Capabilities) -> list[Check]:
    """Return the checks that a store with these capabilities must pass."""
    left_out: set[str] = set()
    limits = capabilities.multipart
    if not capabilities.metadata:
        left_out |= {"check_put_metadata", "check_upload_metadata"}
    if not capabilities.copy:
        left_out |= {"check_copy", "check_copy_missing"}
    if limits is None or limits.min_part_size_bytes <= 1:
        left_out.add("check_small_part")  # no part can be below the limit
    if capabilities.rename:
        left_out |= {
            "check_object_beside_directory",
            "check_directory_markers",
        }  # in such stores a key is either a file or a directory
    if capabilities.rename_dir:
        left_out.add("check_rename_dir_unsupported")
    if limits is None:
        left_out.add("check_rename_dir_with_uploads")
    checks: Iterable[Check] = (
        *_checks_in(objects),
        *KEY_CHECKS,
        *_checks_in(crowds),
        *((*_checks_in(conditions), *_checks_in(races)) if capabilities.conditional_put is not Support.NO else ()),
        *((*_checks_in(uploads), *LISTED_UPLOAD_CHECKS) if limits is not None else ()),
        *(_checks_in(transactions) if capabilities.transactions else ()),
        *(_checks_in(renames) if capabilities.rename else ()),
        *(_checks_in(directories) if capabilities.rename_dir else ()),
    )
    return [check for check in checks if check.name not in left_out]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The result of a run.

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
        return "\n".join(self._line(name, error) for name, error in self.results.items())

    def _line(self, name: str, error: Exception | None) -> str:
        reason = self.deviations.get(name)
        if error is None:
            return (
                f"ok       {name}"
                if reason is None
                else f"FAILED   {name}: passes, despite the declared deviation: {reason}"
            )
        return f"FAILED   {name}: {error}" if reason is None else f"deviates {name}: {reason}"


def run_conformance(
    store: ObjectStore,
    other: ObjectStore | None = None,
    *,
    prefix: str = "conformance",
    deviations: Mapping[str, str] | None = None,
    racers: Sequence[ObjectStore] = (),
    rounds: int = 20,
    progress: Callable[[Check, int, int], None] = lambda _check, _done, _total: None,
) -> Report:
    """Run every check that the store's capabilities require.

    Args:
        store: the store; the checks leave their data below `prefix`.
        other: another handle on the same data; None to use the same one.
        prefix: the directory in which the checks work, without a slash at either end; the directory must be empty.
        deviations: known deviations: maps the name of a check to the reason.
        racers: handles for races, each with its own connections; if empty, eight threads share the two handles.
        rounds: how often each race (a conflict of concurrent writers) is repeated.
        progress: called before each check, with the check, the number of checks done, and their total number.

    Raises:
        UnavailableError: the store stopped responding; the run is incomplete and proves nothing.
    """
    results: dict[str, Exception | None] = {}
    checks = checks_for(store.capabilities)
    for number, check in enumerate(checks):
        progress(check, number, len(checks))
        if results.get(check.needs) is not None:
            results[check.name] = ConformanceError(f"skipped: {check.needs} failed")
            continue
        place = f"{prefix}/{check.name.replace(':', '-')}"
        try:
            check.run(Subject(store, other or store, place, racers, rounds))
        except Exception as error:  # noqa: BLE001  # any error of a store is a result, and the run continues
            results[check.name] = error
            if isinstance(error, UnavailableError):
                store.list_page(f"{place}/", max_keys=1)
        else:
            results[check.name] = None
    return Report(results, deviations or {})
