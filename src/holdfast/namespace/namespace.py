"""Offer HDFS's operations on a namespace, as one caller sees it.

Worked composition::

    namespace = open_namespace("sqlite:///var/lib/ns.db")
    namespace.mkdirs("/data/raw")
    with namespace.create("/data/raw/one.csv") as file:
        file.write(b"1,2\\n")
    namespace.rename("/data", "/archive")                  # one record moves, however large the tree
    assert namespace.open("/archive/raw/one.csv").read() == b"1,2\\n"
    namespace.delete("/archive", recursive=True)           # one record; a collector removes the tree
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import replace
from types import TracebackType
from typing import TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.namespace.blobs import BlobStore, PublishDeadline
from holdfast.namespace.collector import AfterStep, CollectionResult, Collector
from holdfast.namespace.configuration import Configuration, load_configuration
from holdfast.namespace.directory_times import DirectoryTimes
from holdfast.namespace.errors import (
    ParentNotDirectoryError,
    PathExistsError,
    PathNotFoundError,
    RenameError,
    UncheckedTreeError,
    UncountedTreeError,
)
from holdfast.namespace.file_reader import FileChecksum, FileReader, hdfs_checksum
from holdfast.namespace.file_writer import FilePublisher, FileWriter, publish_files
from holdfast.namespace.fsck import CheckedNamespace, Progress, RepairReport, Report, check, ignore_progress, repair
from holdfast.namespace.fsck.survey import CLOSING_S
from holdfast.namespace.inode import DIRECTORY_MODE, FILE_MODE
from holdfast.namespace.keys import new_inode_id
from holdfast.namespace.listing import (
    PAGE_SIZE,
    ContentSummary,
    FileStatus,
    ListPage,
    QuotaUsage,
    list_page,
    make_status,
    walk_tree,
)
from holdfast.namespace.operation import Operation
from holdfast.namespace.operations.attributes import GetStatus, SetAttributes, SetReplication, SetXattr
from holdfast.namespace.operations.content import Concat, OpenForReading, Truncate
from holdfast.namespace.operations.files import Append, Publish, RecoverLease, WriteUnderLease
from holdfast.namespace.operations.names import Delete, Mkdirs, Rename
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import READ, Caller, check_stored_name
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.receipts import ClientRequest, RequestRunner
from holdfast.namespace.sweep import SweepResult, sweep_namespace
from holdfast.namespace.trees import NewQuota, ReadQuota, TreeUsageCounter
from holdfast.namespace.view import InodeCache
from holdfast.runtime import Environment, Moment
from holdfast.transactions.base import Backend

R = TypeVar("R")

_CHECKS = 5
"""How often a tree is checked before its deletion, if another one has its path afterwards."""


class Namespace:
    """An open namespace with HDFS's file operations, for one user. All methods may be called from several threads.

    Paths are absolute, such as ``/data/raw``. Every method raises the errors of `holdfast.namespace.errors` that its
    docstring does not repeat: `InvalidPathError`, `PathTooLongError`, `ParentNotDirectoryError`,
    `PermissionDeniedError`, and `QuotaExceededError` where something is added; and `UnavailableError` and
    `OutcomeUnknownError` if the database goes away.

    Args:
        user, groups: who calls. The namespace's superuser passes every check, and so do members of its supergroup.

    Attributes:
        operations, changes: run operations, for what is built on the namespace; the latter, what its caller asks for.
    """

    def __init__(
        self,
        database: Backend,
        blobs: BlobStore,
        configuration: Configuration,
        environment: Environment,
        *,
        user: str,
        groups: Sequence[str] = (),
    ) -> None:
        self.configuration = configuration
        self.database = database
        self.blobs = blobs
        self.environment = environment
        self.caller = _make_caller(configuration, user, groups)
        self._is_shared = False
        hints, self._times = InodeCache(configuration.identity), DirectoryTimes(database, environment.clock)
        self._collector = Collector(database, blobs, environment.clock, configuration.safety_age_s, hints.identity)
        self.operations = OperationRunner(database, environment, hints, self._times, self._collector.reclaim)
        self.changes = self.operations
        self._trees = TreeUsageCounter(self.operations)

    def as_user(self, user: str, groups: Sequence[str] = ()) -> Namespace:
        """Return this open namespace for calls on behalf of another user.

        The result shares this one's connections, cache and unwritten modification times. So it need not be closed:
        closing it does nothing, and closing this namespace ends it too.

        Args:
            groups: of the user. Unlike `open_namespace`, they are not looked up: pass `opening.groups_of_user(user)`
                for those that this machine knows.

        Raises:
            InvalidRequestError: no user can have the name.
        """
        other = copy(self)
        other.caller = _make_caller(self.configuration, user, groups)
        other._is_shared = True
        return other

    def for_request(self, request: ClientRequest) -> Namespace:
        """Return this namespace, as `as_user` does, for one change that a client of a server asks for: see `receipts`.

        The methods that change the namespace also raise `RequestRepeatedError` and `RequestAbandonedError`.
        """
        other = copy(self)
        other.changes = RequestRunner.of(self.operations, request)
        other._is_shared = True
        return other

    # --- directories --------------------------------------------------------------------------------------------------
    def mkdirs(self, path: str, *, mode: int = DIRECTORY_MODE, parents: bool = True) -> bool:
        """Create a directory; return whether it is new.

        Raises:
            PathExistsError: a file has the path; or a directory, without `parents`.
        """
        return self.run(Mkdirs(path=NsPath.parse(path), mode=mode, parents=parents))

    def list_page(self, path: str, *, start_after: str = "", limit: int = PAGE_SIZE) -> ListPage:
        """Return a page of a directory's entries, in the order of their names; of a file, the file itself.

        Guarantee: a page is a snapshot.

        Args:
            start_after: the name of the last entry of the page before.
            limit: the most entries, at least 1.

        Raises:
            InvalidRequestError: `start_after` is not valid Unicode, or `limit` is not positive.
        """
        if type(limit) is not int or limit < 1:
            raise InvalidRequestError("a page has at least one entry: change the limit", limit=limit)
        try:
            after = start_after.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequestError("a name must be valid Unicode: change it", start_after=start_after) from error
        return list_page(self.operations, NsPath.parse(path), self.caller, after, limit)

    def list(self, path: str) -> Iterator[FileStatus]:
        """Yield the status of a directory's entries, in the order of their names; of a file, its own."""
        page = self.list_page(path)
        yield from page.entries
        while page.more:
            page = self.list_page(path, start_after=page.entries[-1].name)
            yield from page.entries

    def walk(self, path: str) -> Iterator[FileStatus]:
        """Yield the status of everything below a directory, each directory before its entries, by name.

        Guarantee: the walk is one snapshot of the whole tree, which ends with the iterator. It shows all levels, also
        those below the deepest that a path can name.
        """
        return walk_tree(self.operations, NsPath.parse(path), self.caller)

    # --- status -------------------------------------------------------------------------------------------------------
    def status(self, path: str) -> FileStatus:
        """Return the status of a file or a directory.

        Raises:
            PathNotFoundError: nothing has the path.
        """
        found = self.find(path)
        if found is None:
            raise PathNotFoundError("the path does not exist: check it", path=path)
        return found

    def find(self, path: str) -> FileStatus | None:
        """Return the status of a file or a directory; None if the path does not exist, or a file is above it."""
        parsed = NsPath.parse(path)
        try:
            inode, entries_ms = self.operations.read(GetStatus(parsed, self._times), self.caller)
        except ParentNotDirectoryError:
            return None
        return None if inode is None else make_status(parsed, inode, entries_ms)

    def exists(self, path: str) -> bool:
        """Return whether a file or a directory has the path."""
        return self.find(path) is not None

    def content_summary(self, path: str) -> ContentSummary:
        """Count the files, directories and bytes of a tree, in one snapshot.

        Raises:
            PathNotFoundError: nothing has the path.
        """
        return self._trees.summary(NsPath.parse(path), self.caller)

    def quota_usage(self, path: str) -> QuotaUsage:
        """Return the quotas of a path and the usage that the counters have, without walking the tree.

        Raises:
            PathNotFoundError: nothing has the path.
        """
        return self.operations.read(ReadQuota(NsPath.parse(path)), self.caller)

    def check_access(self, path: str, access: int) -> None:
        """Check that the caller has permission bits on a path: the sum of 4 (read), 2 (write) and 1 (execute).

        Raises:
            PathNotFoundError: nothing has the path.
            PermissionDeniedError: a bit is missing.
        """
        inode, _ = self.operations.read(GetStatus(NsPath.parse(path), self._times, access), self.caller)
        if inode is None:
            raise PathNotFoundError("the path does not exist: check it", path=path)

    # --- whole files --------------------------------------------------------------------------------------------------
    def create(
        self,
        path: str,
        *,
        overwrite: bool = False,
        mode: int = FILE_MODE,
        parents: bool = True,
        replication: int | None = None,
        block_size: int | None = None,
        check: bool = True,
    ) -> FileWriter:
        """Open a new file that becomes visible, complete, when it is closed.

        Guarantee: until it is closed, no reader sees the file; with `overwrite`, all readers see the old file. Nothing
        is reserved: of two writers without `overwrite`, the one that closes first wins.

        Args:
            parents: whether closing the file makes missing parents, also those that were deleted since it was opened.
            check: whether to check the path now, and raise the errors below. Closing the file raises them in any case.

        Raises:
            PathExistsError, DirectoryInTheWayError: see the message.
            InvalidRequestError: replication or block size are out of range.
        """
        template = self._make_publication(path, overwrite, mode, parents, replication, block_size)
        if check:
            self.operations.check(template, self.caller)
        return self._make_writer(template)

    def expiry(self) -> PublishDeadline:
        """Return the deadline by which blobs stored from now on must be published without a lease (N3)."""
        clock = self.environment.clock
        return PublishDeadline(clock, Moment.of(clock), max(self.configuration.safety_age_s, CLOSING_S))

    def _make_writer(self, template: Publish | WriteUnderLease, size: int = 0, newest: str = "") -> FileWriter:
        return FileWriter(
            self.blobs,
            FilePublisher(self.changes, self.caller, template, preparing=self.operations),
            inline_bytes=self.configuration.inline_bytes,
            expiry=self.expiry,
            size=size,
            newest=newest,
        )

    def _make_publication(
        self, path: str, overwrite: bool, mode: int, parents: bool, replication: int | None, block_size: int | None
    ) -> Publish:
        return Publish(
            path=NsPath.parse(path),
            file_id=new_inode_id(self.environment),
            mode=mode,
            overwrite=overwrite,
            parents=parents,
            replication=self.configuration.replication if replication is None else replication,
            block_size=self.configuration.block_size if block_size is None else block_size,
        )

    def write_file(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        """Create a file with the given content in one transaction; with `overwrite`, replace an existing one."""
        file, expiry = self._make_publication(path, overwrite, FILE_MODE, True, None, None), self.expiry()
        extents, stored = self.blobs.put(file.file_id, bytes(data), self.configuration.inline_bytes)
        with self.blobs.delete_if_publishing_fails(extents, expiry):
            self.run(replace(file, extents=extents, data=stored, is_late=expiry.is_over))

    def publish_many(self, files: Sequence[FileWriter]) -> None:
        """Publish prepared files (`FileWriter.prepare`) in one transaction: all of them appear, or none.

        If this fails, the files are still prepared: discard them, or try again. If the outcome is unknown, look first.

        Raises:
            InvalidRequestError: a file is not prepared, two have the same path, or there are too many.
            PathExistsError, DirectoryInTheWayError, LeaseLostError, BeingWrittenError: one of the files is impossible.
        """
        for file in files:
            if not file.is_prepared:
                raise InvalidRequestError("a file is not prepared: call prepare instead of close", path=file.path)
        if not files:
            return
        with ExitStack() as stack:
            operations = [stack.enter_context(file.prepare_publish_operation()) for file in files]
            publish_files(self.changes, self.caller, operations)
        for file in files:
            file.mark_published()

    def open(self, path: str) -> FileReader:
        """Open a file for reading.

        Raises:
            PathNotFoundError: nothing has the path.
            PathIsDirectoryError: a directory has it.
        """
        inode, loaded = self.operations.read(OpenForReading(NsPath.parse(path)), self.caller)
        return FileReader(self.database, self.blobs, path, inode, loaded)

    def checksum(self, path: str) -> FileChecksum:
        """Return the checksum that HDFS would have for a file; reads the whole file.

        Raises:
            CorruptDataError: bytes of the file are damaged, so it has no checksum: see `FileReader.read`.
            PathNotFoundError, PathIsDirectoryError: see the message.
        """
        file = self.open(path)
        return hdfs_checksum(file.read, file.size, file.inode.block_size)

    # --- files under a lease ------------------------------------------------------------------------------------------
    def create_with_lease(
        self,
        path: str,
        *,
        overwrite: bool = False,
        mode: int = FILE_MODE,
        parents: bool = True,
        replication: int | None = None,
        block_size: int | None = None,
    ) -> FileWriter:
        """Create an empty file at once, and write it under a lease, as HDFS does: two transactions.

        Guarantee: until the file is closed, no other client can append to it, unless the writer is silent for a minute;
        but the file may be renamed, deleted or overwritten. What `FileWriter.sync` published stays if the writer dies.

        Raises:
            PathExistsError, DirectoryInTheWayError: see the message.
            BeingWrittenError: another client is writing the file.
            InvalidRequestError: replication or block size are out of range.
        """
        holder = self.environment.ids.token()
        operation = replace(
            self._make_publication(path, overwrite, mode, parents, replication, block_size), writer=holder
        )
        self.run(operation)
        return self._make_writer(WriteUnderLease(path=operation.path, file_id=operation.file_id, writer=holder))

    def append(self, path: str) -> FileWriter:
        """Open a file to append to it, under a lease; its content stays visible.

        Raises:
            PathNotFoundError, DirectoryInTheWayError: see the message.
            BeingWrittenError: another client is writing the file.
        """
        self.changes.require_new(self.caller)  # before it takes the lease
        holder, target = self.environment.ids.token(), NsPath.parse(path)
        inode = self.operations.run_again(Append(path=target, writer=holder), self.caller)
        newest = inode.extents[-1].blob if inode.extents else ""
        return self._make_writer(WriteUnderLease(path=target, file_id=inode.id, writer=holder), inode.size, newest)

    def recover_lease(self, path: str) -> bool:
        """End the lease of a file whose writer is considered dead, and close the file; return True."""
        return self.run(RecoverLease(path=NsPath.parse(path)))

    def concat(self, target: str, sources: Sequence[str]) -> None:
        """Append files to another one in the same directory, and remove them. No byte is copied.

        Raises:
            InvalidRequestError: HDFS forbids it: a source is empty, in another directory, or has larger blocks than the
                target.
            BeingWrittenError: one of the files is open for writing.
        """
        parsed = tuple(NsPath.parse(source) for source in sources)
        self.run(Concat(target=NsPath.parse(target), sources=parsed))

    def truncate(self, path: str, length: int) -> None:
        """Cut a file to a length in bytes, in one step.

        Raises:
            InvalidRequestError: the file is shorter.
        """
        self.run(Truncate(path=NsPath.parse(path), length=length))

    # --- names --------------------------------------------------------------------------------------------------------
    def rename(self, source: str, target: str, *, overwrite: bool = False, into: bool = False) -> str:
        """Rename a file or a directory with all below it, in one step (HDFS's ``rename2``); return its new path.

        Args:
            overwrite: whether a file, or an empty directory, is replaced in the same step.
            into: whether to move the source into `target`, under its own name, if that is a directory at the moment of
                the step.

        Raises:
            PathNotFoundError: the source, or the parent of the target, does not exist.
            PathExistsError: the target exists, and `overwrite` is False.
            DirectoryNotEmptyError: the target is a directory with children.
            RenameError: the rename is impossible: see the message.
        """
        rename = Rename(source=NsPath.parse(source), target=NsPath.parse(target), overwrite=overwrite, into=into)
        return str(self.move(rename, self.run))

    def rename_into(self, source: str, target: str) -> bool:
        """Rename, or move into `target` if it is a directory (HDFS's old ``rename``); return False if impossible.

        Raises:
            ParentNotDirectoryError: a file is on one of the paths.
        """
        try:
            rename = Rename(source=NsPath.parse(source), target=NsPath.parse(target), into=True, may_stay=True)
            self.move(rename, self.run)
        except (PathNotFoundError, PathExistsError, RenameError):
            return False
        return True

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file or a directory; return False if nothing has the path, or if it is the root, which stays.

        Guarantee: a tree of any size is gone in one step. The space in the store comes back later: see `collect`.
        Unless the caller is the superuser, the permissions of all directories in the tree are checked before that step,
        as HDFS does, in one snapshot: this reads the whole tree. What others change after the snapshot is not checked.

        Raises:
            DirectoryNotEmptyError: the directory has children, and `recursive` is False.
            UncheckedTreeError: another directory gets the path again and again; nothing happened.
        """
        operation = Delete(path=NsPath.parse(path), recursive=recursive)
        for _ in range(_CHECKS):
            with suppress(UncheckedTreeError):
                return self.run(operation)
            operation = replace(operation, checked_id=self._trees.check_removal(operation.path, self.caller))
        return self.run(operation)

    def trash_root(self) -> str:
        """Return the path of the caller's trash directory, which need not exist; for the error, see `Caller.home`."""
        return f"{self.caller.home}/.Trash"

    # --- attributes ---------------------------------------------------------------------------------------------------
    def set_permission(self, path: str, mode: int) -> None:
        """Change the permission bits of a path, such as ``0o640``; only the owner and the superuser may."""
        self.run(SetAttributes(path=NsPath.parse(path), mode=mode))

    def set_owner(self, path: str, owner: str | None = None, group: str | None = None) -> None:
        """Change a path's owner (only the superuser may) or group (to one of the caller's); None leaves it."""
        self.run(SetAttributes(path=NsPath.parse(path), owner=owner, group=group))

    def set_times(self, path: str, mtime_ms: int | None = None, atime_ms: int | None = None) -> None:
        """Change a path's modification and access time, milliseconds since the epoch; None leaves a time."""
        self.run(SetAttributes(path=NsPath.parse(path), mtime_ms=mtime_ms, atime_ms=atime_ms))

    def set_replication(self, path: str, replication: int) -> bool:
        """Change the replication of a file, which only quotas notice; return False if the path is not a file."""
        return self.run(SetReplication(path=NsPath.parse(path), replication=replication))

    def set_quota(self, path: str, *, names: NewQuota = None, space: NewQuota = None) -> None:
        """Set a directory's quotas, of names (itself included) and of bytes times replication; None removes one, and
        `Kept.AS_IT_IS` leaves it.

        Only the superuser may. A directory that had no quota is counted first, and frozen meanwhile.
        """
        self._trees.set_quota(NsPath.parse(path), self.caller, names, space, self.changes)

    def xattrs(self, path: str) -> dict[str, bytes]:
        """Return a path's extended attributes: those in ``user.``, for the superuser all; raise PathNotFoundError."""
        inode, _ = self.operations.read(GetStatus(NsPath.parse(path), self._times, READ), self.caller)
        if inode is None:
            raise PathNotFoundError("the path does not exist: check it", path=path)
        return {
            name: value for name, value in inode.xattrs.items() if name.startswith("user.") or self.caller.is_superuser
        }

    def set_xattr(
        self, path: str, name: str, value: bytes, *, create: bool = True, replace_existing: bool = True
    ) -> None:
        """Set an extended attribute of a file or directory, such as ``user.origin``.

        Args:
            create, replace_existing: whether the attribute may be new; whether it may exist already.

        Raises:
            InvalidRequestError: the flags forbid it, or the name is wrong, or there are too many or too large values.
        """
        operation = SetXattr(path=NsPath.parse(path), name=name, value=value, create=create, replace=replace_existing)
        self.run(operation)

    def remove_xattr(self, path: str, name: str) -> None:
        """Remove an extended attribute of a file or directory.

        Raises:
            InvalidRequestError: there is no such attribute.
        """
        self.run(SetXattr(path=NsPath.parse(path), name=name, value=None))

    # --- for what is built on the namespace ---------------------------------------------------------------------------
    def run(self, operation: Operation[R]) -> R:
        """Run an operation on behalf of the caller; see `OperationRunner.run`."""
        return self.changes.run(operation, self.caller)

    def move(self, rename: Rename, run: Callable[[Rename], R]) -> R:
        """Run a rename with `run`. If it moves a tree between quotas, freeze and count the tree first.

        Args:
            run: runs the given rename.
        """
        try:
            return run(rename)
        except UncountedTreeError:
            with self._trees.freeze_and_count_tree(rename.source, self.caller) as usage:
                return run(replace(rename, usage=usage))

    # --- the namespace itself -----------------------------------------------------------------------------------------
    def collect(self, *, most_steps: int = 1_000_000, after_step: AfterStep = lambda done: True) -> CollectionResult:
        """Remove deleted trees, close the files of dead writers, and delete old garbage. Safe at any time.

        Args:
            most_steps: stop after so many transactions.
            after_step: called after each transaction; the collection stops when it returns False.

        Raises:
            CorruptDataError: a record is damaged; everything else is done. Run fsck.
            InvalidRequestError: the blobs belong to another namespace; see `holdfast.namespace.configuration`.
        """
        return self._collector.run(most_steps=most_steps, after_step=after_step)

    def sweep(self, progress: Progress = ignore_progress) -> SweepResult:
        """Note blobs that no file refers to as garbage for a later `collect`. Safe at any time; reads all inodes.

        Raises:
            ConflictError: another process sweeps or repairs: wait.
            CorruptDataError: an inode cannot be read; nothing happened. Repair the namespace.
        """
        return sweep_namespace(self._maintenance_context, progress)

    def check(self, progress: Progress = ignore_progress, *, reads: bool = False) -> Report:
        """Check the namespace for damage and leftovers; return a report. Changes nothing; safe at any time.

        Reads all records; with `reads`, all blobs too: only then are damaged bytes of large files found.
        """
        return check(self._maintenance_context, progress, reads=reads)

    def repair(self, progress: Progress = ignore_progress) -> RepairReport:
        """Repair the damage that `check` finds. Only the superuser may. Never deletes the content of a file.

        Raises:
            ConflictError: another process sweeps or repairs: wait.
        """
        self.caller.check_superuser("repair the namespace")
        return repair(self._maintenance_context, self.configuration, progress)

    @property
    def _maintenance_context(self) -> CheckedNamespace:
        now = load_configuration(self.database, self.configuration.identity)  # it may have changed since then
        return CheckedNamespace(self.database, self.blobs, self.environment, now.sweep_age_s, now.identity)

    def flush(self) -> None:
        """Write the modification times of directories that are still in memory only."""
        self._times.flush()

    def close(self) -> None:
        """Write the times in memory, and close database and store; on a result of `as_user`, do nothing."""
        if self._is_shared:
            return
        try:
            self._times.flush()
        finally:
            self.database.close()
            self.blobs.store.close()

    def __enter__(self) -> Namespace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _make_caller(configuration: Configuration, user: str, groups: Sequence[str]) -> Caller:
    check_stored_name(user, "a user")
    passes = user == configuration.superuser or configuration.supergroup in groups
    return Caller(user, frozenset(groups), is_superuser=passes or not configuration.permissions)
