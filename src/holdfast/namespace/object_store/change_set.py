"""Turn the changes of an object store into operations of the namespace, and make all of them in one transaction.

There may be hundreds of thousands, so nothing is kept for each of them but the change itself, which the caller has, and
what the transaction writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from holdfast.errors import ConflictError, FencedError, HoldfastError, InvalidRequestError, PreconditionError
from holdfast.namespace.blobs import Expiry
from holdfast.namespace.inode import Extent
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.directories import directories_below
from holdfast.namespace.object_store.objects import CreateObject, RemoveObject, RequireNoObjects, RequireObject
from holdfast.namespace.operation import Operation, Parts
from holdfast.namespace.operations.batch import MOST_INLINE_BYTES, in_parts
from holdfast.namespace.operations.files import Publish
from holdfast.namespace.paths import MAX_PATH_CHARACTERS, ROOT, NsPath
from holdfast.stores.base import Change, Complete, Create, Delete, Put, PutMode, Require, RequireEmpty, Update
from holdfast.stores.checks import check_key


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of the objects of a namespace."""

    namespace: Namespace

    def template(self) -> Publish:
        """Return a file without path, id and content."""
        configuration = self.namespace.configuration
        return Publish(
            path=ROOT,
            file_id=0,
            overwrite=True,
            replication=configuration.replication,
            block_size=configuration.block_size,
        )

    def store(self, file_id: int, data: bytes, *, inline: bool = True) -> tuple[tuple[Extent, ...], dict[str, bytes]]:
        """Store bytes; return the extents, and what is still to be written into the database.

        Args:
            inline: whether small content goes into the database.
        """
        blobs = self.namespace.blobs
        if not data:
            return (), {}
        if inline and len(data) <= self.namespace.configuration.inline_bytes:
            extent, stored = blobs.small(file_id, data)
            return (extent,), stored
        writer = blobs.open_write(file_id)
        try:
            writer.write(data)
            return (writer.close(),), {}
        except BaseException:
            writer.discard()
            raise

    @contextmanager
    def unless_refused(self, extents: Collection[Extent], expiry: Expiry) -> Iterator[None]:
        """Delete blobs if the block is refused, because no file refers to them then. They stay if that is unknown."""
        try:
            yield
        except (InvalidRequestError, ConflictError, FencedError):
            # What is old may belong to a file by now, to which a repair has given it; else a sweep deletes it.
            if not expiry.is_near():
                with suppress(HoldfastError):  # what is left is garbage
                    self.namespace.blobs.delete_many([one.blob for one in extents if not one.inline])
            raise


MOST_KEY_BYTES = 4 * MAX_PATH_CHARACTERS
"""So many bytes has the longest path: the limits of paths are those of keys, in every call."""


def path_of(key: str) -> NsPath:
    """Return the path of a key.

    Raises:
        InvalidRequestError: the key cannot be a path.
    """
    check_key(key, MOST_KEY_BYTES)
    if key.endswith("/"):
        raise InvalidRequestError("the key of a file must not end in a slash: remove it", key=key)
    return NsPath.parse(f"/{key}")


def created(file: Publish, mode: PutMode) -> CreateObject:
    """Return the operation that publishes a file under the condition of a mode."""
    return CreateObject(path=file.path, file=file, must_be_absent=isinstance(mode, Create), etag=_etag(mode))


def completed(template: Publish, change: Complete, pages: frozenset[int] = frozenset()) -> CreateObject:
    """Return the operation that completes an upload; `pages` are those that it is known to have."""
    return CreateObject(
        path=path_of(change.key),
        file=template,
        upload=change.upload_id,
        numbers=[(part.number, part.etag) for part in change.parts],
        pages=pages,
        must_be_absent=isinstance(change.mode, Create),
        etag=_etag(change.mode),
    )


def _etag(mode: PutMode) -> str:
    return mode.etag if isinstance(mode, Update) else ""


@dataclass(slots=True)
class ChangeSet:
    """Changes that take effect together; they were checked by `check_changes`.

    Attributes:
        empty: the directories that must have no files.
        emptied: once the changes are made, the directories that have lost a file.
        published: once they are made, ids of files that were created and the keys of their inodes: of one file at
            least, unless none was.
    """

    contents: Contents
    changes: Sequence[Change]
    empty: Sequence[NsPath] = field(init=False)
    emptied: set[NsPath] = field(init=False, default_factory=set)
    published: dict[int, bytes] = field(init=False, default_factory=dict)
    _stored: list[Extent] = field(init=False, default_factory=list)
    _large: dict[int, tuple[int, Extent]] = field(init=False, default_factory=dict)  # files and blobs by position
    _expiry: Expiry = field(init=False)  # how long these blobs may wait

    def __post_init__(self) -> None:
        self._expiry = self.contents.namespace.expiry()
        self.empty = [path_of(one.key.rstrip("/")) for one in self.changes if isinstance(one, RequireEmpty)]

    def apply(self) -> None:
        """Make all changes, or none. For the errors, see `TransactionalStore.apply`."""
        with self.contents.unless_refused(self._stored, self._expiry):
            self._store_large()
            paths = [path_of(one.key.rstrip("/")) for one in (self.changes[0], self.changes[-1])]
            self.contents.namespace.run(Parts(paths, self._parts))

    def _store_large(self) -> None:
        """Store the content that is too large for the database."""
        room_bytes = MOST_INLINE_BYTES
        inline_bytes = self.contents.namespace.configuration.inline_bytes
        for position, change in enumerate(self.changes):
            if not isinstance(change, Put) or not change.data:
                continue
            if len(change.data) <= min(room_bytes, inline_bytes):
                room_bytes -= len(change.data)
                continue
            file_id = self.contents.namespace.new_id()
            (extent,), _ = self.contents.store(file_id, bytes(change.data), inline=False)
            self._stored.append(extent)
            self._large[position] = file_id, extent

    def _parts(self) -> Iterator[Operation[None]]:
        """Yield the parts of the step.

        Raises:
            PreconditionError: a directory that must have no files has one.
        """
        self.emptied.clear()  # this may be another try
        self.published.clear()
        free: list[RequireNoObjects] = []
        for path in self.empty:
            below = directories_below(self.contents.namespace, path)
            if below is None:
                raise PreconditionError("the directory is not empty: list it, then decide", key=f"{path}/"[1:])
            condition = RequireNoObjects([path, *below])
            if below:
                yield condition
            else:
                free.append(condition)
        yield from in_parts(chain(free, self._operations()))

    def _operations(self) -> Iterator[RequireObject | RemoveObject | CreateObject]:
        """Yield what refers to the state before, then what makes room, then what needs it."""
        yield from (RequireObject(path_of(one.key), one.etag) for one in self.changes if isinstance(one, Require))
        removals = (one for one in self.changes if isinstance(one, Delete))
        yield from (RemoveObject(path_of(one.key), one.etag, self.emptied) for one in removals)
        template = self.contents.template()
        for position, one in enumerate(self.changes):
            if isinstance(one, Complete):
                yield completed(template, one)
            elif isinstance(one, Put):
                path = path_of(one.key)
                if position in self._large:
                    file_id, extent = self._large[position]
                    is_late = self._expiry.is_over
                    file = replace(template, path=path, file_id=file_id, extents=(extent,), is_late=is_late)
                else:
                    file_id = self.contents.namespace.new_id()
                    extents, data = self.contents.store(file_id, bytes(one.data))
                    file = replace(template, path=path, file_id=file_id, extents=extents, data=data)
                found = created(file, one.mode)
                yield replace(found, keys=self.published) if not self.published and found.must_be_absent else found
