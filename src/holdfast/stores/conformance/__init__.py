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


def checks_for(can: Capabilities) -> list[Check[Subject]]:
    """Return the checks that a store with these capabilities must pass."""
    parts = can.multipart
    conditions = {  # by the beginnings of names
        "check_create": can.conditional_put is not Support.NO,
        "check_update": can.conditional_put is not Support.NO,
        "check_put_metadata": can.metadata,
        "check_upload_metadata": can.metadata,
        "check_copy": can.copy,
        "check_small_part": parts is not None and parts.min_part_size_bytes > 1,  # else every part is large enough
        "check_object_beside_directory": not can.rename,  # where files are renamed, a key is a file or a directory
        "check_directory_markers": not can.rename,
        "check_apply_file_and_directory": can.rename,
        "check_rename_dir": can.rename_dir,
        "check_rename_dir_with_uploads": parts is not None,
        "check_unsupported_rename_dir": not can.rename_dir,
    }
    checks: Iterable[Check[Subject]] = (
        *checks_in(objects),
        *KEY_CHECKS,
        *((*checks_in(uploads), *LISTED_UPLOAD_CHECKS) if parts is not None else ()),
        *(checks_in(transactions) if can.transactions else ()),
        *(checks_in(renames) if can.rename else ()),
    )
    unmet = tuple(beginning for beginning, is_met in conditions.items() if not is_met)
    return [check for check in checks if not check.name.startswith(unmet)]


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

    def make_prefix(check: Check[Subject]) -> str:
        return f"{prefix}/{check.name.replace(':', '-')}"

    return run_checks(
        checks_for(store.capabilities),
        lambda check: Subject(store, other or store, make_prefix(check), racers, rounds),
        lambda check: store.list_page(f"{make_prefix(check)}/", max_keys=1),
        deviations=deviations,
        progress=progress,
    )
