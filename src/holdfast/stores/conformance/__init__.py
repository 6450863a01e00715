"""Check that a store keeps the promises of its protocols. Used by Holdfast's tests and by packages that add a store.

Worked composition, without a test framework::

    report = run_conformance(MyStore(), prefix="conformance")
    print(report)
    assert report.passed

Declare a server's known deviations: ``deviations={"check_small_part": "accepts parts of any size"}``. A check with a
declared deviation still runs; if it passes, the run fails, so that declarations stay up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from holdfast.conformance import Check, ConformanceError, Report, checks_in, run_checks
from holdfast.stores.base import Capabilities, ObjectStore, Support
from holdfast.stores.conformance import objects, renames, transactions, uploads
from holdfast.stores.conformance.objects import KEY_CHECKS, LISTED_UPLOAD_CHECKS, ODD_KEYS
from holdfast.stores.conformance.subject import Subject

__all__ = ["ODD_KEYS", "Check", "ConformanceError", "Report", "Subject", "checks_for", "run_conformance"]


def checks_for(capabilities: Capabilities) -> list[Check[Subject]]:
    """Return the checks that a store with these capabilities must pass."""
    left_out: set[str] = set()
    limits = capabilities.multipart
    if not capabilities.metadata:
        left_out |= {"check_put_metadata", "check_upload_metadata"}
    if not capabilities.copy:
        left_out.add("check_copy")
    if limits is None or limits.min_part_size_bytes <= 1:
        left_out.add("check_small_part")  # no part can be below the limit
    if capabilities.rename:
        left_out |= {
            "check_object_beside_directory",
            "check_directory_markers",
        }  # in such stores a key is either a file or a directory
    else:
        left_out.add("check_apply_file_and_directory")
    if capabilities.rename_dir:
        left_out.add("check_rename_dir_unsupported")
    if limits is None:
        left_out.add("check_rename_dir_with_uploads")
    checks: Iterable[Check[Subject]] = (
        *checks_in(objects),
        *KEY_CHECKS,
        *((*checks_in(uploads), *LISTED_UPLOAD_CHECKS) if limits is not None else ()),
        *(checks_in(transactions) if capabilities.transactions else ()),
        *(checks_in(renames) if capabilities.rename else ()),
    )
    unmet: tuple[str, ...] = ("check_create", "check_update") if capabilities.conditional_put is Support.NO else ()
    unmet += () if capabilities.rename_dir else ("check_rename_dir",)
    return [check for check in checks if check.name not in left_out and not _is_one_of(check, unmet)]


def _is_one_of(check: Check[Subject], beginnings: tuple[str, ...]) -> bool:
    return check.name.startswith(beginnings) and check.name != "check_rename_dir_unsupported"


def run_conformance(
    store: ObjectStore,
    other: ObjectStore | None = None,
    *,
    prefix: str = "conformance",
    deviations: Mapping[str, str] | None = None,
    racers: Sequence[ObjectStore] = (),
    rounds: int = 20,
    progress: Callable[[Check[Subject], int, int], None] = lambda _check, _done, _total: None,
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

    def place(check: Check[Subject]) -> str:
        return f"{prefix}/{check.name.replace(':', '-')}"

    return run_checks(
        checks_for(store.capabilities),
        lambda check: Subject(store, other or store, place(check), racers, rounds),
        lambda check: store.list_page(f"{place(check)}/", max_keys=1),
        deviations=deviations,
        progress=progress,
    )
