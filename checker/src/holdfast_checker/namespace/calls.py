"""Execute operations of the sequential model on the shipped `Namespace`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from holdfast.errors import InvalidRequestError, NotFoundError, OutcomeUnknownError, UnavailableError
from holdfast.namespace import errors
from holdfast.namespace.file_writer import FileWriter
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.runtime import Clock
from holdfast.stores.base import Part, Put

PUBLISH = ("sync", "sync_with_retry", "close", "close_with_retry")
"""The names of operations that publish a writer's bytes; after the first two, the writer keeps its lease."""

ANSWERS = (
    NotFoundError,
    errors.BeingWrittenError,
    errors.DirectoryInTheWayError,
    errors.DirectoryNotEmptyError,
    errors.LeaseLostError,
    errors.NamesQuotaExceededError,
    errors.ParentNotDirectoryError,
    errors.PathExistsError,
    errors.PathIsDirectoryError,
    errors.PathNotFoundError,
    errors.PermissionDeniedError,
    errors.RenameError,
)
"""Errors that count as answers of an operation, because the sequential model gives them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """An uncompleted upload of a file, as known to processes that write its parts or complete it."""

    key: str
    upload_id: str
    parts: tuple[Part, ...] = ()


class NamespaceCallExecutor:
    """Executes operations, given by the names that the model uses, on a real `Namespace`."""

    def __init__(self, namespace: Namespace, clock: Clock, uploads: Mapping[str, PendingUpload]) -> None:
        self.uploads = dict(uploads)
        self._namespace = namespace
        self._clock = clock
        self._store = NamespaceStore(namespace)
        self._writers: dict[str, FileWriter] = {}
        self._written: dict[str, str] = {}  # what is not published yet

    def execute_by_name(self, name: str, *args: object) -> object:
        """Execute one operation by its name in the model, and return its result as a value."""
        act: Callable[..., object] = getattr(self, f"_{name}")
        return act(*args)

    # --- directories, names -------------------------------------------------------------------------------------------
    def _mkdirs(self, path: str) -> bool:
        return self._namespace.mkdirs(path)

    def _delete(self, path: str) -> bool:
        return self._namespace.delete(path)

    def _delete_tree(self, path: str) -> bool:
        return self._namespace.delete(path, recursive=True)

    def _rename(self, source: str, target: str) -> None:
        self._namespace.rename(source, target)

    def _replace(self, source: str, target: str) -> None:
        self._namespace.rename(source, target, overwrite=True)

    def _list(self, path: str) -> tuple[str, ...]:
        return tuple(one.path for one in self._namespace.list(path))

    def _walk(self, path: str) -> tuple[str, ...]:
        return tuple(sorted((one.path for one in self._namespace.walk(path)), key=lambda one: one.split("/")))

    def _set_mode(self, path: str, mode: int) -> None:
        self._namespace.set_permission(path, mode)

    def _set_owner(self, path: str, owner: str) -> None:
        self._namespace.set_owner(path, owner)

    def _set_quota(self, path: str, names: int) -> None:
        self._namespace.set_quota(path, names=names or None)

    # --- whole files --------------------------------------------------------------------------------------------------
    def _create(self, path: str, mark: str) -> None:
        self._namespace.write_file(path, mark.encode())

    def _overwrite(self, path: str, mark: str) -> None:
        self._namespace.write_file(path, mark.encode(), overwrite=True)

    def _read(self, path: str) -> str:
        return self._namespace.open(path).read().decode()

    def _concat(self, target: str, *sources: str) -> None:
        self._namespace.concat(target, sources)

    def _publish(self, *files: tuple[str, str]) -> None:
        with ExitStack() as stack:
            writers = []
            for path, mark in files:
                writers.append(self._namespace.create(path, check=False))
                stack.callback(writers[-1].discard)  # what is published is not discarded
                writers[-1].write(mark.encode())
                writers[-1].prepare()
            self._namespace.publish_many(writers)

    def _put_all(self, *files: tuple[str, str]) -> None:
        self._store.apply([Put(path[1:], mark.encode()) for path, mark in files])

    def _start_upload(self, path: str, name: str) -> None:
        self.uploads[name] = PendingUpload(key=path[1:], upload_id=self._store.create_upload(path[1:]))

    def _upload(self, name: str, mark: str) -> None:
        pending = self._find_pending_upload(name)
        part = self._store.upload_part(pending.key, pending.upload_id, len(pending.parts) + 1, mark.encode())
        self.uploads[name] = replace(pending, parts=(*pending.parts, part))

    def _complete(self, name: str, content: str) -> None:
        """Complete an upload with the parts that this process knows.

        Args:
            content: theirs, for the model.

        Raises:
            UnavailableError: an earlier call could not upload a part, or the database has lost it; nothing happened.
        """
        pending = self._find_pending_upload(name)
        if not pending.parts:
            raise UnavailableError("no part was uploaded: there is nothing to complete", upload=name)
        try:
            self._store.complete_upload(pending.key, pending.upload_id, pending.parts)
        except InvalidRequestError as error:
            if isinstance(error, ANSWERS):
                raise
            raise UnavailableError("a part is not there: there is nothing to complete", upload=name) from error

    def _abort(self, name: str) -> None:
        pending = self._find_pending_upload(name)
        self._store.abort_upload(pending.key, pending.upload_id)

    def _find_pending_upload(self, name: str) -> PendingUpload:
        if name not in self.uploads:
            raise NotFoundError("the upload was not started: there is nothing to end", upload=name)
        return self.uploads[name]

    # --- files under a lease ------------------------------------------------------------------------------------------
    def _create_with_lease(self, path: str, writer: str) -> None:
        self._writers[writer] = self._namespace.create_with_lease(path)

    def _append(self, path: str, writer: str) -> None:
        self._writers[writer] = self._namespace.append(path)

    def _write(self, writer: str) -> None:
        """Let the writer look at the clock, and renew its lease if it is time.

        If the renewal conflicts with a recovery, the next call tells: so there are two.
        """
        if writer in self._writers:
            self._clock.now_s()
            self._writers[writer].write(b"")
            self._writers[writer].write(b"")

    def _sync(self, writer: str, content: str) -> None:
        self._write_and_publish(writer, content, lambda file: file.sync())

    def _close(self, writer: str, content: str) -> None:
        self._write_and_publish(writer, content, lambda file: file.close())

    def _sync_with_retry(self, writer: str, content: str) -> None:
        _retry_unknown_outcome_once(lambda: self._sync(writer, content))

    def _close_with_retry(self, writer: str, content: str) -> None:
        _retry_unknown_outcome_once(lambda: self._close(writer, content))

    def _write_and_publish(self, writer: str, content: str, act: Callable[[FileWriter], object]) -> None:
        if writer not in self._writers:
            raise errors.LeaseLostError("the file was not opened: there is nothing to close", writer=writer)
        file = self._writers[writer]
        written = self._written.get(writer, "")
        file.write(content.removeprefix(written).encode())
        self._written[writer] = content
        try:
            act(file)
        except errors.LeaseLostError:
            self._writers.pop(writer).discard()
            raise
        self._written[writer] = ""

    def _recover(self, path: str) -> bool:
        return self._namespace.recover_lease(path)


def _retry_unknown_outcome_once(call: Callable[[], None]) -> None:
    """Make a call; if nobody knows whether it took effect, make it once more."""
    try:
        call()
    except OutcomeUnknownError:
        call()
