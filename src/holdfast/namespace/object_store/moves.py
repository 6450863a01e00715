"""Move files and directories of the object store: what a `RenameStore` does, each in one step.

The directories that the new path needs are made in the same step, and a target that contains nothing but directories
goes in it: so a move that is refused has changed nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import NotFoundError
from holdfast.namespace.errors import ParentNotDirectoryError, PathExistsError
from holdfast.namespace.inode import DIRECTORY_MODE, Inode
from holdfast.namespace.keys import records_of, upload_key
from holdfast.namespace.object_store.directories import mark_directories, may_go, require_no_files
from holdfast.namespace.operation import Changes, Context, charge, grown_only
from holdfast.namespace.operations.base import PathGroup, check_chain, make_parents
from holdfast.namespace.operations.batch import merge
from holdfast.namespace.operations.names import Rename
from holdfast.namespace.other_records import Upload
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, WRITE
from holdfast.namespace.view import Chain, Entry, View, follow
from holdfast.transactions.base import ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFile(PathGroup):
    """Rename a file, and make the directories of its new path.

    Group: that of `Rename`; the missing directories are inserted.
    """

    rename: Rename

    @property
    def paths(self) -> tuple[NsPath, ...]:
        """Source and target."""
        return self.rename.paths

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the leases of source and target."""
        return self.rename.also(chains)

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `Rename`.

        Raises:
            NotFoundError: the source is no file.
        """
        source = _source(view, context, "no such object: check the key")
        if source is not None and source.is_directory:
            raise NotFoundError("no such object: check the key", key=str(self.rename.source)[1:])
        return _moved(self.rename, view, context)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveDirectory:
    """Rename a directory, and the pending uploads below it with it.

    Group: that of `Rename`, the directories below the target and the absence of anything else there, and the uploads,
    exclusively.

    Attributes:
        uploads: the tokens of the pending uploads below the source.
        below: the directories below the target, which go with it.
        is_taken: whether there are files or pending uploads below the target.
    """

    rename: Rename
    uploads: Sequence[str]
    below: Sequence[NsPath] = ()
    is_taken: bool = False

    @property
    def paths(self) -> tuple[NsPath, ...]:
        """Source and target, and what is below the target."""
        return (*self.rename.paths, *self.below)

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the records of the uploads."""
        return [*self.rename.also(chains[:2]), *map(upload_key, self.uploads)]

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return no range: what the target contains is known, and is validated."""
        return None

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `Rename`.

        Raises:
            NotFoundError: the source is not a directory, and has no uploads.
            PathTooLongError: the new path of an upload would be too long.
            PathExistsError: the target is a file, is above the source, or contains files or pending uploads; or
                it, or a directory below it, has a quota or attributes.
        """
        source = _source(view, context, "no such directory: check the key")
        if (source is None and not self.uploads) or (source is not None and not source.is_directory):
            raise NotFoundError("no such directory: check the key", key=str(self.rename.source)[1:])
        if self.is_taken:
            raise PathExistsError("the target exists: choose another one", path=str(self.rename.target))
        changes = self._without_source(view, context) if source is None else self._with_source(view, context)
        for token in self.uploads:
            key = upload_key(token)
            value = view.value(key)
            if value is not None:
                upload = Upload.decode(key, value)
                inner = upload.path.removeprefix(f"{self.rename.source}/")
                if inner != upload.path:  # else it was moved elsewhere meanwhile
                    path = NsPath.parse(f"{self.rename.target}/{inner}")  # may be too long
                    changes.values[key] = replace(upload, path=str(path)).encode()
        return changes

    def _with_source(self, view: View, context: Context) -> Changes[None]:
        """Rename the directory in place of a target that contains no files."""
        source, target, *below = view.chains
        if target.target is None:
            return _moved(self.rename, replace(view, chains=(source, target)), context)
        self._check_target(view, context)
        changes: Changes[None] = Changes(None)
        removed = [one for one in (target, *below) if one.target is not None]
        require_no_files(changes, removed)
        for chain in removed:
            assert chain.target is not None
            context.caller.check_removal(chain)
            changes.deletes |= {chain.target_key, *records_of(chain.target.id, chain.target.quota_id)}
        changes.deletes.discard(target.target_key)
        charge(changes, target.ancestors, names=-len(removed))
        free = Chain(target.path, target.inodes[:-1], target.keys)
        merge(changes, self.rename.execute(replace(view, chains=(source, free)), context))
        changes.puts[target.target_key] = changes.inserts.pop(target.target_key)
        changes.bounds = grown_only(changes.bounds, changes.adds)
        return changes

    def _without_source(self, view: View, context: Context) -> Changes[None]:
        """Check what moves uploads alone: they belong to the deepest directories that exist, before and after."""
        source, target, *below = view.chains
        check_chain(target, context)
        changes: Changes[None] = Changes(None)
        if target.target is not None:
            self._check_target(view, context)
            require_no_files(changes, [target, *below])
        for chain in (source, target):
            context.caller.check(chain, len(chain.inodes) - 1, WRITE | EXECUTE)
        return changes

    def _check_target(self, view: View, context: Context) -> None:
        """Check that an existing target, and what is below it, may go."""
        for chain in view.chains[1:]:
            check_chain(chain, context)
            is_above = self.rename.source.is_below(chain.path)
            if chain.target is not None and (is_above or not may_go(chain.target, is_in_the_way=True)):
                raise PathExistsError("the target exists: choose another one", path=str(self.rename.target))


def _source(view: View, context: Context, missing: str) -> Inode | None:
    """Return the source of a move.

    Raises:
        NotFoundError: a file is above it.
        PermissionDeniedError: the caller may not follow the path.
    """
    source = view.chains[0]
    try:
        context.caller.check_traversal(source)
    except ParentNotDirectoryError as error:
        raise NotFoundError(missing, key=str(source.path)[1:]) from error
    return source.target


def _moved(rename: Rename, view: View, context: Context) -> Changes[None]:
    """Rename, and make the missing directories of the new path."""
    source, target = view.chains
    changes: Changes[None] = Changes(None)
    if target.parent is None:
        check_chain(target, context)
        parents = make_parents(changes, target, context, mode=DIRECTORY_MODE)
        mark_directories(changes)
        charge(changes, target.ancestors, names=parents.made)

        def look(key: bytes) -> Entry | None:
            inode = changes.inserts.get(key)
            return view.entries.get(key) if inode is None else Entry(ABSENT, inode)

        target = follow(target.path, look)
    merge(changes, rename.execute(replace(view, chains=(source, target)), context))
    changes.bounds = grown_only(changes.bounds, changes.adds)
    return changes
