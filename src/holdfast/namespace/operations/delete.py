"""Delete files and directories, however large the tree below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import DirectoryNotEmptyError, UncheckedTreeError
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import children_range
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import PathGroup, check_chain, remove_empty, remove_target
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import Chain, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(PathGroup):
    """Delete a file or a directory; returns whether there was one. The root stays, which is no error in HDFS.

    Group: the inodes on the path, shared; the target, exclusively; without `recursive`, the absence of its children.

    Attributes:
        checked_id: the inode id of the directory below which the caller's permissions were checked; not needed for the
            superuser.
    """

    path: NsPath
    recursive: bool = False
    checked_id: int = 0

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return the children of a directory that has to be empty."""
        target = chains[0].target
        if self.recursive or target is None or not target.is_directory:
            return None
        return children_range(target.id)

    def execute(self, view: View, context: Context) -> Changes[bool]:
        """See `Operation`.

        Raises:
            DirectoryNotEmptyError: the directory has children, and `recursive` is False.
            UncheckedTreeError: the permissions in the tree were not checked.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        check_chain(chain, context)
        target = chain.target
        if self.path.names:
            context.caller.check_removal(chain)
        else:
            context.caller.check_superuser("delete the root")
        if target is not None and target.is_directory and not self.recursive and view.has_children:
            raise DirectoryNotEmptyError("the directory is not empty: delete it recursively", path=str(self.path))
        if target is None or not self.path.names:
            return Changes(False)
        if target.is_directory and self.recursive and not context.caller.is_superuser:
            self._require_check(target)
        changes = Changes(True)
        changes.touched.add(chain.keys[-2])
        if target.is_directory and not self.recursive:
            remove_empty(changes, chain)
        else:
            remove_target(changes, chain, context)
        return changes

    def _require_check(self, target: Inode) -> None:
        """Refuse a tree in which nobody has checked the caller's permissions: another one may have the path by now."""
        if target.id != self.checked_id:
            raise UncheckedTreeError("the permissions in the tree were not checked: repeat", path=str(self.path))
