"""Check POSIX permissions as HDFS does.

Source: Hadoop's HDFS Permissions Guide, and ``FSPermissionChecker``: traversal needs x on every ancestor; a sticky
directory lets only the owners of the entry and of the directory, and the superuser, remove the entry.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from holdfast.errors import InvalidRequestError
from holdfast.namespace.errors import InvalidPathError, ParentNotDirectoryError, PermissionDeniedError
from holdfast.namespace.inode import Inode
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import ResolvedPath

READ, WRITE, EXECUTE = 4, 2, 1
STICKY = 0o1000
_LETTERS = {READ: "read", WRITE: "write", EXECUTE: "execute"}


_MAX_NAME_BYTES = 1024


def check_stored_name(name: str, what: str, most_bytes: int = _MAX_NAME_BYTES) -> None:
    """Check that the name of a user, a group or an extended attribute is valid Unicode, not empty and not too long.

    Raises:
        InvalidRequestError: it is empty, too long, or is not valid Unicode.
    """
    try:
        size = len(name.encode())
    except (UnicodeEncodeError, AttributeError) as error:  # an AttributeError: it is no text
        raise InvalidRequestError(f"the name of {what} must be valid Unicode: change it", name=name) from error
    if not size:
        raise InvalidRequestError(f"the name of {what} is empty: give one")
    if size > most_bytes:
        raise InvalidRequestError(
            f"the name of {what} is limited to {most_bytes} bytes: shorten it", begins=name[:60], bytes=size
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """The user who calls an operation, with the user's groups; checks permissions.

    Attributes:
        is_superuser: whether every check passes.
    """

    user: str
    groups: frozenset[str] = frozenset()
    is_superuser: bool = False

    @property
    def home(self) -> str:
        """The path of the user's home directory, ``/user/<name>``, which need not exist.

        Raises:
            InvalidRequestError: no directory can have the name of the user, such as ``..`` and ``a/b``.
        """
        with suppress(InvalidPathError):
            path = NsPath.parse(f"/user/{self.user}")
            if len(path.names) == 2 and not self.user.endswith("/"):
                return str(path)
        raise InvalidRequestError(
            "no directory can have the name of this user, who so has neither a home nor a trash", user=self.user
        )

    def has_permission(self, inode: Inode, access: int) -> bool:
        """Return whether the caller has all of the permission bits `access` (4 read, 2 write, 1 execute) on an
        inode.
        """
        if self.is_superuser:
            return True
        if self.user == inode.owner:
            bits = inode.mode >> 6
        elif inode.group in self.groups:
            bits = inode.mode >> 3
        else:
            bits = inode.mode
        return bits & access == access

    def check_traversal(self, chain: ResolvedPath) -> None:
        """Check that all inodes above the path's target are directories that the caller may search.

        Raises:
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        for depth, inode in enumerate(chain.ancestors):
            if not inode.is_directory:
                raise ParentNotDirectoryError(
                    "a component of the path is a file: check the path",
                    path=str(chain.path),
                    file=_path_at_depth(chain, depth),
                )
            if not self.is_superuser and not self.has_permission(inode, EXECUTE):
                self.raise_permission_denied(inode, EXECUTE, _path_at_depth(chain, depth))

    def check(self, chain: ResolvedPath, depth: int, access: int) -> None:
        """Check that the caller has the permission bits `access` on the inode at a depth of a path; the root has depth
        0.

        Raises:
            PermissionDeniedError: the caller lacks one of them.
        """
        if not self.is_superuser and not self.has_permission(chain.inodes[depth], access):
            self.raise_permission_denied(chain.inodes[depth], access, _path_at_depth(chain, depth))

    def check_listing(self, path: NsPath, directory: Inode) -> None:
        """Check that the caller may read and search a directory; the directories above it are not checked.

        Raises:
            PermissionDeniedError: see the message.
        """
        if not self.has_permission(directory, READ | EXECUTE):
            self.raise_permission_denied(directory, READ | EXECUTE, str(path))

    def check_removal(self, chain: ResolvedPath) -> None:
        """Check that the caller may remove the target of a path from its directory: that needs write permission, and
        ownership if the sticky bit is set.

        If the target does not exist, only write permission is checked; without a parent, nothing.

        Raises:
            PermissionDeniedError: the caller may not remove it.
        """
        if chain.parent is not None:
            self.check(chain, len(chain.path.names) - 1, WRITE)
            if chain.target is not None and not self.passes_sticky_bit_check(chain.parent, chain.target):
                raise PermissionDeniedError(
                    "the directory is sticky, so only owners may remove its entries",
                    path=str(chain.path),
                    user=self.user,
                )

    def passes_sticky_bit_check(self, parent: Inode, entry: Inode) -> bool:
        """Return whether the sticky bit of a directory lets the caller remove an entry: only the owner of the
        entry or of the directory may.
        """
        return not parent.mode & STICKY or self.is_superuser or self.user in (parent.owner, entry.owner)

    def check_owner(self, chain: ResolvedPath) -> None:
        """Check that the caller is the owner of the target of a path, or the superuser."""
        assert chain.target is not None
        if not self.is_superuser and chain.target.owner != self.user:
            raise PermissionDeniedError(
                "only the owner or the superuser may do this", path=str(chain.path), owner=chain.target.owner
            )

    def check_superuser(self, what: str) -> None:
        """Check that the caller is the superuser; `what` completes the message "only the superuser may …"."""
        if not self.is_superuser:
            raise PermissionDeniedError(f"only the superuser may {what}: act as that one (--user)", user=self.user)

    def raise_permission_denied(self, inode: Inode, access: int, path: str) -> NoReturn:
        """Raise the error of a caller who lacks the permission bits `access` on an inode.

        Raises:
            PermissionDeniedError: always.
        """
        words = " and ".join(word for bit, word in _LETTERS.items() if access & bit)
        raise PermissionDeniedError(
            f"permission denied: the user may not {words} here",
            user=self.user,
            path=path,
            owner=inode.owner,
            group=inode.group,
            mode=f"{inode.mode:04o}",
        )


def _path_at_depth(chain: ResolvedPath, depth: int) -> str:
    return str(NsPath(chain.path.names[:depth]))
