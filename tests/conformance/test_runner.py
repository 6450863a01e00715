"""Test the runner that is shipped for other packages' stores: what it reports, and that its checks can fail."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from holdfast.errors import PreconditionError, UnavailableError
from holdfast.stores.base import (
    Capabilities,
    Change,
    Complete,
    Create,
    Delete,
    MultipartLimits,
    ObjectInfo,
    Overwrite,
    Put,
    PutMode,
    Require,
    RequireEmpty,
    Support,
    Update,
    iter_objects,
)
from holdfast.stores.conformance import checks_for, run_conformance
from holdfast.stores.interceptors import InterceptedStore, StoreCall, StoreOperation
from holdfast.stores.memory import MemoryStore
from tests.interceptors import FOR_EVER, Fault, FaultMode, Faulty, Recorder

T = TypeVar("T")
TINY_PARTS = MultipartLimits(min_part_size_bytes=16)


def test_report_of_a_right_store() -> None:
    report = run_conformance(MemoryStore(limits=TINY_PARTS, rename=True, transactions=True))
    assert report.passed, str(report)
    assert len(report.results) > 70
    assert all(line.startswith("ok ") for line in str(report).splitlines())


class _IgnoresConditions(MemoryStore):
    """A store like rclone, juicefs and swift (facts: conditional writes are ignored without an error)."""

    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        return super().put(key, data, Overwrite(), metadata)


def test_report_names_what_a_store_does_not_do() -> None:
    report = run_conformance(_IgnoresConditions(limits=TINY_PARTS))
    failed = {name for name, error in report.results.items() if error is not None}
    assert failed == {
        "check_create",
        "check_create_delete_race",
        "check_create_race",
        "check_update",
        "check_update_missing",
        "check_update_race",
    }
    assert not report.passed
    assert "FAILED   check_create: create over an object: expected PreconditionError" in str(report)


class _EtagsAreLengths(MemoryStore):
    """A store whose etags are made of the length alone, as if of a length and a time in seconds."""

    def _publish(self, key: str, data: bytes, etag: str, metadata: Mapping[str, str]) -> ObjectInfo:
        return super()._publish(key, data, f"{len(data):032x}", metadata)


def test_an_etag_that_two_contents_share_is_noticed() -> None:
    report = run_conformance(_EtagsAreLengths(limits=TINY_PARTS))
    failed = {name for name, error in report.results.items() if error is not None}
    assert failed == {"check_get_of_one_object", "check_update"}


class _LooksThenWrites(MemoryStore):
    """A store like Adobe S3Mock: it honors a single condition, but two of many writers may both find a key free."""

    def __init__(self) -> None:
        super().__init__(limits=TINY_PARTS)
        self._together = threading.Barrier(2)

    def put(
        self, key: str, data: bytes, mode: PutMode = Overwrite(), metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        if isinstance(mode, Overwrite):
            return super().put(key, data, mode, metadata)
        there = {info.key: info.etag for info in iter_objects(self, key)}
        if there.get(key) != (mode.etag if isinstance(mode, Update) else None):
            raise PreconditionError("the object is not as expected")
        with contextlib.suppress(threading.BrokenBarrierError):
            self._together.wait(0.05)  # if another writer is checking, both finish the check before either writes
        self._together.reset()
        return super().put(key, data, Overwrite(), metadata)


def test_a_store_that_looks_before_it_writes_fails_in_races_only() -> None:
    report = run_conformance(_LooksThenWrites(), rounds=10)
    failed = {name for name, error in report.results.items() if error is not None}
    assert failed >= {"check_create_race", "check_update_race"}
    assert failed <= {"check_create_race", "check_update_race", "check_create_delete_race"}


def test_a_store_that_ends_is_not_asked_on() -> None:
    faulty = Faulty(Fault(FaultMode.FAIL, nth=300, times=FOR_EVER))
    calls = Recorder()
    with pytest.raises(UnavailableError):
        run_conformance(InterceptedStore(InterceptedStore(MemoryStore(limits=TINY_PARTS), faulty), calls))
    assert len(calls.calls) < 320


def test_races_have_handles_of_their_own() -> None:
    inner = MemoryStore(limits=TINY_PARTS)
    recorded = [Recorder() for _ in range(3)]
    handles = [InterceptedStore(inner, one) for one in recorded]
    seen: list[str] = []
    report = run_conformance(inner, racers=handles, rounds=4, progress=lambda check, *_: seen.append(check.name))
    assert report.passed, str(report)
    assert seen == list(report.results)
    creates = [sum(isinstance(call.mode, Create) for call in one.calls) for one in recorded]
    assert creates == [8, 8, 8], "one for each round of the two races of creates"


def test_declared_deviations_have_to_be_there() -> None:
    declared = dict.fromkeys(
        (
            *("check_create", "check_create_race", "check_create_delete_race"),
            *("check_update", "check_update_missing", "check_update_race"),
        ),
        "ignored",
    )
    assert run_conformance(_IgnoresConditions(limits=TINY_PARTS), deviations=declared).passed
    report = run_conformance(MemoryStore(limits=TINY_PARTS), deviations={"check_create": "ignored"})
    assert not report.passed
    assert "check_create: passes, despite the declared deviation: ignored" in str(report)


def test_checks_follow_capabilities() -> None:
    def names(capabilities: Capabilities) -> set[str]:
        return {check.name for check in checks_for(capabilities)}

    least = names(Capabilities(conditional_put=Support.NO))
    assert "check_put_get_head" in least
    assert not least & {"check_create", "check_abort", "check_rename", "check_copy", "check_put_metadata"}
    assert "check_object_beside_directory" in least
    by_file = names(Capabilities(rename=True))
    assert {"check_rename", "check_path_that_is_a_file", "check_unsupported_rename_dir"} <= by_file
    assert not by_file & {"check_object_beside_directory", "check_rename_dir"}
    in_a_database = names(Capabilities(multipart=MultipartLimits(), transactions=True))
    assert {"check_apply", "check_apply_race", "check_abort"} <= in_a_database
    in_one_step = names(Capabilities(rename=True, rename_dir=True))
    assert "check_rename_dir" in in_one_step
    assert not in_one_step & {"check_unsupported_rename_dir", "check_rename_dir_with_uploads"}
    assert {"check_create", "check_rename", "check_abort", "check_copy", "check_upload_metadata"} <= names(
        Capabilities(multipart=MultipartLimits(), rename=True, metadata=True, copy=True)
    )


class _RenamesFileByFile(MemoryStore):
    """A store that claims atomic directory rename but takes many steps, as on GCS."""

    def rename_dir(self, source: str, target: str) -> None:
        for info in list(iter_objects(self, f"{source}/")):
            self.rename(info.key, target + info.key[len(source) :])


def test_report_of_a_store_that_renames_directories_file_by_file() -> None:
    report = run_conformance(_RenamesFileByFile(limits=TINY_PARTS, rename=True))
    failed = {name for name, error in report.results.items() if error is not None}
    assert {"check_rename_dir_target_exists", "check_rename_dir_missing", "check_rename_dir_with_uploads"} <= failed


class _OneAfterTheOther(MemoryStore):
    """A store that claims transactions, and makes the changes one by one, each with its condition."""

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            super().apply([change])


def test_a_store_that_makes_changes_one_by_one_fails() -> None:
    report = run_conformance(_OneAfterTheOther(limits=TINY_PARTS, transactions=True))
    failed = {name for name, error in report.results.items() if error is not None}
    assert failed >= {"check_apply_refused", "check_apply_impossible", "check_apply_race"}
    assert all(name.startswith("check_apply") for name in failed)


class _ForgetsToCheck(MemoryStore):
    """A store whose transactions ignore some of the conditions."""

    def __init__(self, ignored: Callable[[Change], Change | None]) -> None:
        super().__init__(limits=TINY_PARTS, transactions=True)
        self._ignored = ignored

    def apply(self, changes: Sequence[Change]) -> None:
        super().apply([kept for change in changes if (kept := self._ignored(change)) is not None])


@pytest.mark.parametrize(
    ("ignored", "check"),
    [
        (lambda change: None if isinstance(change, Require) else change, "check_apply_refused"),
        (lambda change: None if isinstance(change, RequireEmpty) else change, "check_apply_refused"),
        (
            lambda change: replace(change, mode=Overwrite()) if isinstance(change, Complete) else change,
            "check_apply_refused",
        ),
        (lambda change: replace(change, mode=Overwrite()) if isinstance(change, Put) else change, "check_apply_race"),
        (lambda change: Delete(change.key) if isinstance(change, Delete) else change, "check_apply_delete"),
    ],
    ids=["require", "require-empty", "absent-target", "create", "etag"],
)
def test_a_condition_that_is_ignored_is_noticed(ignored: Callable[[Change], Change | None], check: str) -> None:
    assert run_conformance(_ForgetsToCheck(ignored)).results[check] is not None


def _swallow(*operations: StoreOperation) -> Callable[[StoreCall, Callable[[], T]], T]:
    def interceptor(call: StoreCall, proceed: Callable[[], T]) -> T:
        return None if call.operation in operations else proceed()  # type: ignore[return-value]  # these calls return None

    return interceptor


@pytest.mark.parametrize(
    ("operation", "check"),
    [
        (StoreOperation.DELETE, "check_delete"),
        (StoreOperation.DELETE_MANY, "check_delete_many"),
        (StoreOperation.ABORT_UPLOAD, "check_abort"),
        (StoreOperation.RENAME, "check_rename"),
        (StoreOperation.RENAME_DIR, "check_rename_dir"),
        (StoreOperation.RENAME_DIR, "check_rename_dir_target_exists"),
        (StoreOperation.COPY, "check_copy"),
        (StoreOperation.APPLY, "check_apply"),
        (StoreOperation.APPLY, "check_apply_delete"),
        (StoreOperation.APPLY, "check_apply_many"),
        (StoreOperation.APPLY, "check_apply_replaces"),
    ],
)
def test_checks_notice_a_call_that_does_nothing(operation: StoreOperation, check: str) -> None:
    inner = MemoryStore(limits=TINY_PARTS, rename=True, transactions=True)
    report = run_conformance(InterceptedStore(inner, _swallow(operation)))
    assert report.results[check] is not None
