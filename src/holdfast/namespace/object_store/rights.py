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
            if chain.target is not None:
                context.caller.check_removal(chain)
                if not self.by_rename:
                    context.caller.check(chain, len(chain.path.names), WRITE)
        return Changes(None)


@dataclass(frozen=True, slots=True)
class MaySee(PathGroup):
    """Return, for each path of a pending upload, whether the caller may see the upload.

    Group: the inodes on the paths, as one snapshot.
    """

    paths: Sequence[NsPath]

    def execute(self, view: View, context: Context) -> Changes[list[bool]]:
        """See `Operation`."""
        return Changes([may_use(chain, context.caller, or_read=True) for chain in view.chains])


def may_use(chain: Chain, caller: Caller, *, or_read: bool = False) -> bool:
    """Check whether a caller may add parts to the pending uploads of a path, and abort them.

    An upload belongs to the directory in which its file will be, or to the deepest one that exists. Whoever may write
    that directory may use it; whoever may list it, or write it, sees it.

    Args:
        or_read: whether permission to list the directory is enough.
    """
    # A file above the path makes the upload useless; it must be possible to abort it.
    above = [inode for inode in chain.ancestors if inode.is_directory]
    if not all(caller.may(inode, EXECUTE) for inode in above):
        return False
    return caller.may(above[-1], WRITE) or (or_read and caller.may(above[-1], READ))
