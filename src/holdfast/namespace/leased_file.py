"""Publish what writers have written, wherever their files are by now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from holdfast.namespace.errors import LeaseLostError
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import lease_key
from holdfast.namespace.lease import Lease
from holdfast.namespace.operations.files import Publish, WriteUnderLease
from holdfast.namespace.operations.together import check_files, in_parts
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.phases import Operations
from holdfast.namespace.trails import find_path
from holdfast.transactions.base import Backend

R = TypeVar("R")

_MOVES = 20


@dataclass(slots=True)
class LeasedFile:
    """A file that one writer has opened.

    Attributes:
        path: where the file was last found, even if the operation on it failed: its reply may have been lost.
    """

    operations: Operations
    caller: Caller
    path: NsPath

    def publish(self, operation: Publish | WriteUnderLease) -> Inode:
        """Run an operation on the file; return its inode. For the errors, see `publish`."""
        files = [replace(operation, path=self.path)]
        try:
            return _until_it_stays(self.operations, files, lambda: self.operations.run(files[0], self.caller))
        finally:
            self.path = files[0].path


def publish(operations: Operations, caller: Caller, files: list[Publish | WriteUnderLease]) -> None:
    """Run operations on different files in one step.

    Args:
        files: the operations; they get the present paths of their files.

    Raises:
        LeaseLostError: a file was deleted or replaced, or somebody has recovered its lease; or it is moved again and
            again.
        InvalidRequestError: there are too many files, or two have the same path.
        HoldfastError: one of the operations is impossible.
    """
    check_files(files)

    def run() -> None:
        paths = [one.path for one in files]
        operations.run_in_parts(lambda: in_parts(files), caller, paths)

    _until_it_stays(operations, files, run)


def _until_it_stays(operations: Operations, files: list[Publish | WriteUnderLease], run: Callable[[], R]) -> R:
    """Run operations on files, again as long as one of the files is found at another path."""
    for left in reversed(range(_MOVES)):
        try:
            return run()
        except LeaseLostError:
            moved = [_present(operations.store, one) for one in files]
            if moved == files or not left:
                raise
            files[:] = moved
    raise AssertionError("the last try returns or raises")


def _present(store: Backend, operation: Publish | WriteUnderLease) -> Publish | WriteUnderLease:
    """Return an operation with the present path of its file; unchanged if this writer has no lease of the file."""
    if isinstance(operation, Publish):
        return operation
    key = lease_key(operation.file_id)
    record = store.get_many([key]).get(key)
    lease = None if record is None else Lease.decode(key, record.value)
    if lease is None or lease.holder != operation.writer:
        return operation
    path = find_path(store, lease.key, lease.trail)
    return operation if path is None else replace(operation, path=path)
