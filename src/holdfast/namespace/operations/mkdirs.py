"""Make directories."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.namespace.accounting import charge
from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import PathExistsError
from holdfast.namespace.inode import DIRECTORY_MODE
from holdfast.namespace.keys import inode_key
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import PathGroup, check_chain, make_parents, new_directory
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Mkdirs(PathGroup):
    """Make a directory; returns whether it is new.

    Group: the inodes on the path, shared; the missing ones are inserted.

    Attributes:
        parents: whether to make missing parents, and to accept an existing directory (``mkdir -p``).
    """

    path: NsPath
    mode: int = DIRECTORY_MODE
    parents: bool = True

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def execute(self, view: View, context: Context) -> Changes[bool]:
        """See `Operation`.

        Raises:
            PathExistsError: a file has the path; or a directory, without `parents`.
            ParentNotDirectoryError, PathNotFoundError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        check_chain(chain, context)
        if chain.target is not None:
            if chain.target.is_directory and self.parents:
                return Changes(False)
            word = "directory" if chain.target.is_directory else "file"
            raise PathExistsError(f"a {word} has this path already: choose another one", path=str(self.path))
        changes = Changes(True)
        parent = make_parents(changes, chain, context, mode=self.mode, allowed=self.parents)
        changes.inserts[inode_key(parent.inode.id, self.path.names[-1])] = new_directory(
            parent.inode, context, self.mode
        )
        charge(changes, chain.ancestors, names=parent.made + 1)
        return changes
