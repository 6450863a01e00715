"""Delete files and directories, however large the tree below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.namespace.accounting import charge, usage_keys
from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import DirectoryNotEmptyError, RenameError
from holdfast.namespace.keys import children_range, times_key
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import PathGroup, check_chain, remove_target
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import Chain, View
from holdfast.transactions.base import RangeCount

__all__ = ["Delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(PathGroup):
    """Delete a file or a directory; returns whether there was one.

    Group: the inodes on the path, shared; the target, exclusively; without `recursive`, the absence of its children.
    """

    path: NsPath
    recursive: bool = False

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
            RenameError: the path is the root.
            PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        check_chain(chain, context)
        target = chain.target
        if target is None:
            return Changes(False)
        if not self.path.names:
            raise RenameError("the root cannot be deleted: delete its entries", path="/")
        context.caller.check_removal(chain)
        changes = Changes(True)
        assert chain.parent is not None
        changes.touched.add(chain.parent.id)
        if target.is_directory and not self.recursive:
            if view.has_children:
                raise DirectoryNotEmptyError("the directory is not empty: delete it recursively", path=str(self.path))
            changes.deletes.add(chain.target_key)
            changes.deletes.add(times_key(target.id))
            if target.has_quota:
                changes.deletes.update(usage_keys(target))
            changes.ranges.append(RangeCount(chain.target_key, *children_range(target.id), 0))
            charge(changes, chain.ancestors, names=-1)
        else:
            remove_target(changes, chain, context)
        return changes
