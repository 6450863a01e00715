"""Mistakes in uploads, and in the sweep for blobs that nobody owns: functions that run in place of shipped ones.

Each takes the shipped function first (see `planting`). `mutants` says what a developer might have been thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from holdfast.errors import NotFoundError
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.fsck.findings import Progress, ignore_progress
from holdfast.namespace.fsck.survey import NamespaceSurvey, Row
from holdfast.namespace.inode import Extent
from holdfast.namespace.keys import data_key, garbage_key, upload_key
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.operation import Changes
from holdfast.namespace.sweep import SweepResult, sweep_namespace
from holdfast.namespace.view import View
from holdfast.stores.base import Part
from holdfast.transactions.base import Backend, Commit, Committed, Record, ScanPage, SnapshotReader

__all__ = [
    "abort_without_validation",
    "add_a_part_without_validation",
    "complete_without_validation",
    "forget_what_is_left_out",
    "ignore_leases",
    "ignore_uploads",
    "list_the_young",
    "sweep_without_snapshot",
]


# --- uploads ----------------------------------------------------------------------------------------------------------
def abort_without_validation(shipped: Callable[..., None], self: NamespaceStore, key: str, upload_id: str) -> None:
    """In place of `NamespaceStore.abort_upload`: delete the upload and its parts, whatever happened since the look."""
    try:
        parts = list(self._read_upload(key, upload_id).parts.values())
    except NotFoundError:
        return
    small = [data_key(part.blob) for part in parts if part.inline]
    large = {garbage_key(self.namespace.operations.now_ms(), part.blob): b"" for part in parts if not part.inline}
    self.namespace.database.commit(Commit(deletes=[upload_key(upload_id), *small], inserts=large))


def add_a_part_without_validation(
    shipped: Callable[..., Part], self: NamespaceStore, key: str, upload_id: str, number: int, data: bytes
) -> Part:
    """In place of `NamespaceStore.upload_part`: add a part to the upload, as if nobody else had changed it."""
    upload = self._read_upload(key, upload_id)
    (part,), small = self.namespace.blobs.put(upload.file_id, data, self.namespace.configuration.inline_bytes)
    value = replace(upload, parts={**upload.parts, number: part}).encode()
    inserts = {data_key(blob): content for blob, content in small.items()}
    outcome = self.namespace.database.commit(Commit(puts={upload_key(upload_id): value}, inserts=inserts))
    assert isinstance(outcome, Committed)
    return Part(number, part.blob, len(data))


def complete_without_validation(shipped: Callable[..., Commit], self: Changes[Any], view: View) -> Commit:
    """In place of `Changes.to_commit`: do not compare the versions of uploads."""
    commit = shipped(self, view)
    if not self.inserts and not self.puts:
        return commit  # no file: a part, or an abort
    return replace(commit, reads={key: version for key, version in commit.reads.items() if key[:1] != b"p"})


def forget_what_is_left_out(
    shipped: Callable[..., list[Extent]], parts: Mapping[int, Extent], extents: Collection[Extent]
) -> list[Extent]:
    """In place of `_parts_left_out`: leave the parts that are not named where they are."""
    return []


# --- sweeps -----------------------------------------------------------------------------------------------------------
def ignore_uploads(shipped: Callable[..., Iterator[Row]], key: bytes, record: Record, now_ms: int) -> Iterator[Row]:
    """In place of `_upload_rows`: take the parts of an upload for nobody's."""
    return iter(())


def ignore_leases(
    shipped: Callable[..., Iterator[tuple[str, int]]], survey: NamespaceSurvey
) -> Iterator[tuple[str, int]]:
    """In place of `find_unowned_objects`: take an old blob for one that no writer will publish."""
    survey._connection.execute("DELETE FROM leased")
    return shipped(survey)


def list_the_young(
    shipped: Callable[..., None],
    survey: NamespaceSurvey,
    blobs: BlobStore,
    store_now_s: float,
    age_s: float,
    progress: Progress,
    *,
    with_young: bool = True,
    after_s: float = -1.0,
) -> None:
    """In place of `add_blobs`: take every blob for an old one."""
    shipped(survey, blobs, store_now_s, -1.0, progress, with_young=with_young, after_s=after_s)


class _Live:
    """A database whose snapshots show what others change."""

    def __init__(self, database: Backend) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @contextmanager
    def snapshot(self) -> Iterator[SnapshotReader]:
        yield self

    def get_many(self, keys: Collection[bytes]) -> dict[bytes, Record]:
        return self._database.get_many(keys)

    def scan(self, start: bytes, end: bytes, limit: int, guards: Collection[bytes] = ()) -> ScanPage:
        return self._database.scan(start, end, limit, guards)


def sweep_without_snapshot(
    shipped: Callable[..., SweepResult], self: Namespace, progress: Progress = ignore_progress
) -> SweepResult:
    """In place of `Namespace.sweep`: read the records page by page, each as it is by then."""
    live: Any = _Live(self.database)
    return sweep_namespace(replace(self._maintenance_context, database=live), progress)
