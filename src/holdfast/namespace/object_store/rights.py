"""Ask in advance whether the caller may write objects: a job must not run, and fail at its end (C11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import PathIsDirectoryError
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import PathGroup
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, WRITE, Caller
from holdfast.namespace.view import Chain, View

__all__ = ["CheckTargets", "MayUse"]


@dataclass(frozen=True, slots=True)
class CheckTargets(PathGroup):
    """Change nothing; refuse if an object could not be written to one of the paths now.

    Group: the inodes on the paths, as one snapshot.

    Attributes:
        by_rename: whether a file is renamed to the path, which needs no permission on a file that it replaces.
    """

    paths: Sequence[NsPath]
    by_rename: bool

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `Operation`.

        Raises:
            PathIsDirectoryError: a directory has one of the paths.
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        for chain in view.chains:
            context.caller.check_traversal(chain)
            if chain.target is not None and chain.target.is_directory:
                raise PathIsDirectoryError("a directory has this key: choose another one", key=str(chain.path)[1:])
            context.caller.check(chain, len(chain.ancestors) - 1, WRITE)
            if chain.target is not None and self.by_rename:
                context.caller.check_removal(chain)
            elif chain.target is not None:
                context.caller.check(chain, len(chain.path.names), WRITE)
        return Changes(None)


@dataclass(frozen=True, slots=True)
class MayUse(PathGroup):
    """Return, for each path of a pending upload, whether the caller may do something with the upload.

    An upload belongs to the directory in which its file will be, or to the deepest one that exists. Whoever may write
    that directory may add parts and abort; whoever may list it, or write it, sees the upload.

    Group: the inodes on the paths, as one snapshot.

    Attributes:
        only_see: whether the question is who sees the uploads.
    """

    paths: Sequence[NsPath]
    only_see: bool = False

    def execute(self, view: View, context: Context) -> Changes[list[bool]]:
        """See `Operation`."""
        return Changes([self._may_use(chain, context.caller) for chain in view.chains])

    def _may_use(self, chain: Chain, caller: Caller) -> bool:
        # A file above the path makes the upload useless; it must be possible to abort it.
        above = [inode for inode in chain.ancestors if inode.is_directory]
        if not all(caller.may(inode, EXECUTE) for inode in above):
            return False
        return caller.may(above[-1], WRITE) or (self.only_see and caller.may(above[-1], READ))
