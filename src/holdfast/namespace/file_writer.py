"""Write files of the namespace: make their content durable, then publish it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

from holdfast.errors import ConflictError, FencedError, HoldfastError, InvalidRequestError, OutcomeUnknownError
from holdfast.namespace.blobs import BlobStore, BlobWriter, PublishDeadline
from holdfast.namespace.errors import FeatureUnsupportedError, LeaseLostError
from holdfast.namespace.inode import Extent, Inode, check_times
from holdfast.namespace.keys import lease_key
from holdfast.namespace.operation import OperationBatch
from holdfast.namespace.operations.files import Publish, WriteUnderLease
from holdfast.namespace.other_records import SOFT_LIMIT_MS, Lease, find_path
from holdfast.namespace.permissions import Caller
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.view import SeenRecord
from holdfast.transactions.base import Backend, Commit, Committed

R = TypeVar("R")

MOST_FILES = 10_000
MOST_INLINE_BYTES = 4 * 1024 * 1024
"""How many bytes of files one step may write into the database: all of them are in memory at the same time."""


class FileWriter:
    """Writes a file of the namespace from start to end.

    Guarantee: `close` makes the content durable, then publishes it in one transaction. A writer that is discarded, or
    that dies, publishes nothing but what `sync` has published. A writer that is discarded gives its lease back; a
    ``with`` block discards it if it could not be closed.

    `Namespace.publish_many` publishes several files in one step, after `prepare` was called for each instead of
    `close`.

    Args:
        inline_bytes: content up to this size goes into the database.
        expiry: returns how long a blob that is stored from now on may wait for its publication; a lease protects it for
            longer.
        size: how long the file is already, bytes.
        newest: the last blob of the file; empty if it has none.
    """

    def __init__(
        self,
        blobs: BlobStore,
        file: FilePublisher,
        *,
        inline_bytes: int,
        expiry: Callable[[], PublishDeadline],
        size: int = 0,
        newest: str = "",
    ) -> None:
        self._blobs = blobs
        self._file = file
        self._template = file.template
        self._inline_bytes = inline_bytes
        self._expiry = expiry
        self._size = size
        self._newest = newest  # of those that are known to be published
        self._small = bytearray()
        self._blob: BlobWriter | None = None
        self._blob_expiry: PublishDeadline | None = None  # the blob's date in the store is not before its beginning
        self._first_expiry: PublishDeadline | None = None  # that of the oldest blob that is durable
        self._extents: tuple[Extent, ...] = ()  # durable, and not known to be published
        self._data: dict[str, bytes] = {}  # the small ones of them
        self._may_be_published = False  # so blobs stay, even if an error promises that nothing happened
        self._is_unknown = False  # whether it was published
        self._proof = ""  # the newest blob that only an earlier call of close can have published
        self._synced = 0  # how many of the extents a sync may have published
        self._is_broken = False
        self._is_open = True
        self._is_prepared = False
        self._pid = os.getpid()
        self.written_bytes = 0

    @property
    def path(self) -> str:
        """The path at which the file was created or opened."""
        return str(self._template.path)

    @property
    def is_small(self) -> bool:
        """Whether everything written so far fits into the database, so that no blob in the object store was begun."""
        return self._blob is None

    @property
    def is_prepared(self) -> bool:
        """Whether `prepare` was called, and the file is neither published nor discarded."""
        return self._is_prepared and self._is_open

    @property
    def position(self) -> int:
        """Where the next byte is written, in bytes from the start of the file."""
        return self._size + self.written_bytes

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append bytes; return their number.

        Raises:
            InvalidRequestError: the file is closed or prepared, or bytes of an earlier call are lost.
            LeaseLostError: the lease was recovered; or, without a lease, earlier bytes have waited for longer
                than the safety age, and were deleted. Write the file again.
            HoldfastError: the object store failed. The file cannot be completed: `discard` it, and write it again.
        """
        self._check_open()
        self._file.renew_if_due()  # before the bytes are taken: a call that failed may be repeated
        view = memoryview(data).cast("B")
        if self._blob is None and len(self._small) + len(view) <= self._inline_bytes:
            self._small += view
        else:
            self._is_broken = True  # unless the blob takes all bytes: else it is unknown which ones it has
            blob = self._open_blob()
            if not blob.has_fixed_modification_time and view:  # no bytes, no new date
                self._blob_expiry = self._expiry()
            blob.write(view)
            self._is_broken = False
        self.written_bytes += len(view)
        return len(view)

    def set_mtime(self, mtime_ms: int) -> None:
        """Set the modification time with which the file will be published, milliseconds since the epoch. Needs no
        permission.

        Raises:
            FeatureUnsupportedError: the file was created with a lease: set its time when it is closed.
            InvalidRequestError: the time is out of range.
        """
        if not isinstance(self._template, Publish):
            raise FeatureUnsupportedError("a file under a lease exists already: set its time later", path=self.path)
        check_times(mtime_ms)
        self._template = replace(self._template, mtime_ms=mtime_ms)

    def sync(self) -> None:
        """Publish what was written so far, and keep the file open. Each call adds an extent to the file, so do not call
        it for every line.

        If it fails, the content is published by the next `sync` or `close`.

        Raises:
            FeatureUnsupportedError: the file was created without a lease.
            LeaseLostError: the lease was recovered, or the database has lost what was synced before; nothing
                happened. Write the file again.
            OutcomeUnknownError: it is unknown whether the content was published. Repeat, or look at the file.
        """
        self._check_open()
        if isinstance(self._template, Publish):
            raise FeatureUnsupportedError("sync needs a lease: use create_with_lease", path=self.path)
        self._seal_extent()
        self._synced, self._proof = len(self._extents), ""
        with self.prepare_publish_operation(closes=False) as operation:
            self._file.publish(operation)
        self._may_be_published = self._is_unknown = False
        self._newest = self._extents[-1].blob if self._extents else self._newest
        self._extents, self._data, self._synced = (), {}, 0

    def close(self) -> Inode | None:
        """Publish the rest of the content and close the file; return its inode, or None if it was closed before.

        If it fails, it may be called again, or `discard`. Content is published once: if an earlier call may have
        published the file, a later one only looks for it.

        Raises:
            InvalidRequestError: bytes of an earlier call are lost.
            LeaseLostError: the lease was recovered, or the database has lost what was synced before; or,
                without a lease, bytes have waited for longer than the safety age. Nothing happened. Write the file
                again.
            OutcomeUnknownError: it is unknown whether the file was published. Repeat, or look at the file.
        """
        if not self._is_open:
            return None
        self._check_still_writable()
        self._seal_extent()
        with self.prepare_publish_operation() as operation:
            inode = self._file.publish(operation)
        self._is_open = False
        return inode

    def prepare(self, *, inline: bool = True) -> int:
        """Make the content durable without publishing it; return how many bytes will go into the database.

        Args:
            inline: whether small content may go into the database.
        """
        self._check_open()
        if not inline and self._small:
            self._open_blob()
        self._seal_extent()
        self._is_prepared = True
        return sum(map(len, self._data.values()))

    @contextmanager
    def prepare_publish_operation(self, *, closes: bool = True) -> Iterator[Publish | WriteUnderLease]:
        """Yield the operation that publishes the durable content, which the block must run; with `closes`, it also
        closes the file.

        Raises:
            OutcomeUnknownError: the lease is lost, and it is unknown what an earlier call without a reply has done.
        """
        operation = self._make_operation(closes=closes)
        may_be_published, before = self._may_be_published, (self._is_unknown, self._proof)
        self._may_be_published = self._is_unknown = True
        if closes and len(self._extents) > self._synced:
            self._proof = self._extents[-1].blob
        try:
            yield operation
        except (InvalidRequestError, ConflictError, FencedError) as error:  # this operation was refused
            self._may_be_published = may_be_published
            self._is_unknown, self._proof = before
            if self._is_unknown and isinstance(error, LeaseLostError):
                raise OutcomeUnknownError(
                    "the lease of the file is lost, and it is unknown whether an earlier call has published what was "
                    "written, or closed the file: look at it",
                    path=self.path,
                ) from error
            raise
        except HoldfastError as error:
            if not isinstance(error, OutcomeUnknownError):
                self._is_unknown, self._proof = before
            raise

    def _make_operation(self, *, closes: bool) -> Publish | WriteUnderLease:
        """Return the operation that publishes what is durable."""
        if isinstance(self._template, Publish):
            return replace(
                self._template,
                extents=self._extents,
                data=self._data,
                is_repeated=self._is_unknown,
                is_late=self._is_past_expiry,
            )
        proof = self._proof if closes else ""
        return replace(
            self._template, extents=self._extents, data=self._data, closes=closes, newest=self._newest, proof=proof
        )

    def _is_past_expiry(self) -> bool:
        return self._first_expiry is not None and self._first_expiry.is_over()

    def mark_published(self) -> None:
        """Mark the file as closed, after another call has published it."""
        self._is_open = False

    def discard(self) -> bool:
        """Discard an open file, and give its lease back; return whether it was open. What `sync` has published stays.

        Errors are suppressed: what is left is garbage.
        In a child of the process that opened the file, only this copy is closed: the parent may be writing the file.
        """
        gives_up = self._is_open and self._pid == os.getpid()
        self._is_open = False
        if gives_up:
            self._discard_unpublished()
        return gives_up

    def _check_open(self) -> None:
        if not self._is_open or self._is_prepared:
            raise InvalidRequestError("the file is closed: open it again to write to it", path=self.path)
        self._check_still_writable()

    def _check_still_writable(self) -> None:
        if self._pid != os.getpid():  # both processes would publish their copies, and one of them would be lost
            raise InvalidRequestError(
                "the file was opened by another process: write and close it there", path=self.path
            )
        if self._is_broken:
            raise InvalidRequestError("an earlier write failed, and its bytes are lost: write the file again")

    def _open_blob(self) -> BlobWriter:
        """Return the blob for large content, and move what was small so far into it."""
        if self._blob is None:
            self._blob_expiry = self._expiry()
            self._blob = self._blobs.open_write(self._template.file_id)
            self._blob.write(bytes(self._small))
            self._small.clear()
        return self._blob

    def _seal_extent(self) -> None:
        """Make what was written durable, as one more extent; the next transaction publishes it."""
        if self._blob is not None:
            if self._blob.does_close_fix_modification_time:
                self._blob_expiry = self._expiry()
            self._first_expiry = self._first_expiry or self._blob_expiry
            extent = self._blob.close()
            self._blob = None
        elif self._small:
            extent, data = self._blobs.new_small_blob(self._template.file_id, self._small)
            self._data |= data
            self._small.clear()
        else:
            return
        self._extents += (extent,)

    def _discard_unpublished(self) -> None:
        """Remove what no file refers to, and give the lease back."""
        with suppress(HoldfastError):
            if self._blob is not None:
                self._blob.discard()
        with suppress(HoldfastError):
            # What is old may belong to a file by now, to which a repair has given it; else a sweep deletes it.
            is_old = self._first_expiry is not None and self._first_expiry.is_half_over()
            if not self._may_be_published and not is_old:
                self._blobs.delete_many([extent.blob for extent in self._extents if not extent.inline])
        if isinstance(self._template, WriteUnderLease):
            with suppress(HoldfastError):  # after a minute the lease ends by itself
                self._file.give_lease_back(self._template)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.close()
        finally:
            self.discard()


# --- files that move while they are written ---------------------------------------------------------------------------
_MOVES = 20
_RENEWAL_S = SOFT_LIMIT_MS / 1000 / 2


class FilePublisher:
    """Publishes the content of one file for its writer, and follows the file if it is renamed while it is written under
    a lease.

    Args:
        preparing: runs what the caller did not ask for: that a lease is given back.

    Attributes:
        template: the operation that publishes the file, without content.
        path: where the file was last found, even if the operation on it failed: its reply may have been lost.
    """

    def __init__(
        self,
        operations: OperationRunner,
        caller: Caller,
        template: Publish | WriteUnderLease,
        preparing: OperationRunner | None = None,
    ) -> None:
        self._operations = operations
        self._preparing = preparing or operations
        self._caller = caller
        self.template = template
        self.path = template.path
        self._renewed_s = operations.environment.clock.elapsed_s()

    def publish(self, operation: Publish | WriteUnderLease) -> Inode:
        """Run an operation on the file at its present path; return the file's inode.

        For the errors, see `publish_files`.
        """
        return self._run_at_present_path(operation, self._operations)

    def give_lease_back(self, operation: WriteUnderLease) -> None:
        """Close the file without further content, on behalf of a writer who gives up; for the errors, see `publish`."""
        self._run_at_present_path(operation, self._preparing)

    def _run_at_present_path(self, operation: Publish | WriteUnderLease, runner: OperationRunner) -> Inode:
        files = [replace(operation, path=self.path)]
        try:
            return _repeat_until_paths_current(runner, files, lambda: runner.run(files[0], self._caller))
        finally:
            self.path = files[0].path

    def renew_if_due(self) -> None:
        """Renew the lease of the file if 30 seconds have passed since the last renewal; without a lease, do nothing.

        Raises:
            LeaseLostError: the lease was recovered.
        """
        clock, database = self._operations.environment.clock, self._operations.database
        now_s = clock.elapsed_s()
        if isinstance(self.template, Publish) or now_s - self._renewed_s < _RENEWAL_S:
            return
        key, holder = lease_key(self.template.file_id), self.template.writer
        record = database.get_many([key]).get(key)
        lease = None if record is None else Lease.decode(key, record.value)
        if record is None or lease is None or lease.holder != holder:
            raise LeaseLostError("the lease of the file was recovered: write the file again", holder=holder)
        value = replace(lease, renewed_ms=self._operations.now_ms()).encode()
        outcome = database.commit(Commit(reads={key: record.version}, puts={key: value}))
        if isinstance(outcome, Committed):
            self._operations.hints.put(key, SeenRecord(outcome.version, None, value))
            self._renewed_s = now_s
        # A conflict is a rename of the file, or a recovery: the next call tells.


def publish_files(operations: OperationRunner, caller: Caller, files: list[Publish | WriteUnderLease]) -> None:
    """Publish several different files in one transaction, given the operation of each.

    Args:
        files: the operations; they get the present paths of their files.

    Raises:
        LeaseLostError: a file was deleted or replaced, or its lease was recovered; or it is moved again and again.
        InvalidRequestError: there are too many files, or two have the same path.
        HoldfastError: one of the operations is impossible.
    """
    if len(files) > MOST_FILES:
        raise InvalidRequestError(f"at most {MOST_FILES} files can appear in one step: publish fewer", files=len(files))
    inline_bytes = sum(len(data) for one in files for data in one.data.values())
    if inline_bytes > MOST_INLINE_BYTES:
        raise InvalidRequestError(
            f"at most {MOST_INLINE_BYTES} bytes can go into the database in one step: prepare files with inline=False",
            bytes=inline_bytes,
        )
    for path, count in Counter(one.path for one in files).items():
        if count > 1:
            raise InvalidRequestError("a path occurs twice in one step: write each file once", path=str(path))
    _repeat_until_paths_current(
        operations, files, lambda: operations.run(OperationBatch([one.path for one in files], lambda: files), caller)
    )


def _repeat_until_paths_current(
    operations: OperationRunner, files: list[Publish | WriteUnderLease], run: Callable[[], R]
) -> R:
    """Run operations on files, again as long as one of the files is found at another path."""
    for left in reversed(range(_MOVES)):
        try:
            return run()
        except LeaseLostError:
            moved = [_update_path(operations.database, one) for one in files]
            if moved == files or not left:
                raise
            files[:] = moved
    raise AssertionError("the last try returns or raises")


def _update_path(database: Backend, operation: Publish | WriteUnderLease) -> Publish | WriteUnderLease:
    """Return an operation with the present path of its file; unchanged if this writer has no lease of the file."""
    if isinstance(operation, Publish):
        return operation
    key = lease_key(operation.file_id)
    record = database.get_many([key]).get(key)
    lease = None if record is None else Lease.decode(key, record.value)
    if lease is None or lease.holder != operation.writer:
        return operation
    path = find_path(database, lease.key, lease.trail)
    return operation if path is None else replace(operation, path=path)
