"""Read and change the attributes of files and directories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from holdfast.errors import InvalidRequestError
from holdfast.namespace.directory_times import DirectoryTimes
from holdfast.namespace.errors import PermissionDeniedError, XattrError
from holdfast.namespace.inode import Inode, check_replication, check_times, is_integer_in_range
from holdfast.namespace.keys import times_key
from holdfast.namespace.operation import Changes, OperationContext, charge_quotas
from holdfast.namespace.operations.base import SinglePathOperation, check_reachable_and_not_frozen, get_unfrozen_target
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import STICKY, WRITE, check_stored_name
from holdfast.namespace.view import ResolvedPath, View

_XATTR_NAMESPACES = ("user.", "trusted.", "system.", "security.", "raw.")
_MAX_XATTRS = 32
_MAX_XATTR_BYTES = 16384
"""HDFS's ``dfs.namenode.fs-limits.max-xattr-size``: of a name without its namespace, and its value."""


@dataclass(frozen=True, slots=True)
class GetStatus(SinglePathOperation):
    """Read the inode at a path, and when the entries of a directory last changed; the result is None and 0 if the path
    does not exist.

    Reads the inodes on the path and the directory's time as one snapshot.

    Attributes:
        times: directory times that this process has not written yet.
        access: permission bits that the caller needs on the inode itself; 0 for none.
    """

    path: NsPath
    times: DirectoryTimes
    access: int = 0

    def extra_keys(self, chains: Sequence[ResolvedPath]) -> Collection[bytes]:
        """Return the key of the modification time of the directory's entries."""
        target = chains[0].target
        return [times_key(target.id)] if target is not None and target.is_directory else ()

    def execute(self, view: View, context: OperationContext) -> Changes[tuple[Inode | None, int]]:
        """Return the inode and the time of its entries, in milliseconds since the epoch, as the result.

        Raises:
            ParentNotDirectoryError, PermissionDeniedError: see the message.
        """
        (chain,) = view.chains
        context.caller.check_traversal(chain)
        if chain.target is not None and self.access:
            context.caller.check(chain, len(chain.path.names), self.access)
        if chain.target is None or not chain.target.is_directory:
            return Changes((chain.target, 0))
        entry = view.entries.get(times_key(chain.target.id))
        return Changes((chain.target, self.times.time_of(chain.target.id, 0 if entry is None else entry.number)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAttributes(SinglePathOperation):
    """Change mode, owner, group or times of a file or directory; None leaves an attribute as it is. The result is the
    new inode.

    Reads the inodes on the path, and writes the target.

    Attributes:
        owner: only the superuser may change it.
        group: the owner may change it to one of the owner's groups.
        mtime_ms, atime_ms: who may write the file or directory may change them.
    """

    path: NsPath
    mode: int | None = None
    owner: str | None = None
    group: str | None = None
    mtime_ms: int | None = None
    atime_ms: int | None = None

    def execute(self, view: View, context: OperationContext) -> Changes[Inode]:
        """Return the changes that store the new attributes.

        Raises:
            PathNotFoundError, PermissionDeniedError, InvalidRequestError: see the message.
        """
        (chain,) = view.chains
        self._check_values()
        inode, caller = get_unfrozen_target(chain, context), context.caller
        if self.mode is not None or self.owner is not None or self.group is not None:
            caller.check_owner(chain)
        if self.owner not in (None, inode.owner) and not caller.is_superuser:
            raise PermissionDeniedError("only the superuser may change the owner", path=str(self.path))
        if self.group is not None and not caller.is_superuser and self.group not in caller.groups:
            raise PermissionDeniedError(
                "the owner may give a file only to one of the owner's groups", path=str(self.path), group=self.group
            )
        if self.mtime_ms is not None or self.atime_ms is not None:
            caller.check(chain, len(self.path.names), WRITE)
        changed = replace(
            inode,
            mode=inode.mode if self.mode is None else _check_permission_mode(self.mode),
            owner=inode.owner if self.owner is None else self.owner,
            group=inode.group if self.group is None else self.group,
            mtime_ms=inode.mtime_ms if self.mtime_ms is None else self.mtime_ms,
            atime_ms=inode.atime_ms if self.atime_ms is None else self.atime_ms,
        )
        changes = Changes(changed)
        sets_time = self.mtime_ms is not None and inode.is_directory
        if changed != inode or sets_time:  # a new version, so that no client writes an older time of the entries later
            changes.puts[chain.target_key] = changed
        if sets_time:
            changes.deletes.add(times_key(inode.id))
        return changes

    def _check_values(self) -> None:
        """Refuse what a record could not hold."""
        for what, name in (("an owner", self.owner), ("a group", self.group)):
            if name is not None:
                check_stored_name(name, what)
        check_times(self.mtime_ms, self.atime_ms)


def _check_permission_mode(mode: int) -> int:
    if not is_integer_in_range(mode, 0, 0o1777):
        raise InvalidRequestError("a mode has at most the bits 1777: change it", mode=mode)
    return mode


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReplication(SinglePathOperation):
    """Change the replication of a file, which counts in quotas of space; the result is False if the path is not a file.

    Reads the inodes on the path, and writes the target.
    """

    path: NsPath
    replication: int

    def execute(self, view: View, context: OperationContext) -> Changes[bool]:
        """Return the changes that store the new replication and adjust the quotas of space.

        Raises:
            PermissionDeniedError, InvalidRequestError: see the message.
        """
        (chain,) = view.chains
        check_reachable_and_not_frozen(chain, context)
        check_replication(self.replication)
        inode = chain.target
        if inode is None:
            return Changes(False)
        context.caller.check(chain, len(self.path.names), WRITE)
        if inode.is_directory:
            return Changes(False)
        changes = Changes(True)
        changed = changes.puts[chain.target_key] = replace(inode, replication=self.replication)
        charge_quotas(changes, chain.ancestors, space=changed.space - inode.space)
        return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class SetXattr(SinglePathOperation):
    """Set or remove an extended attribute of a file or directory.

    Reads the inodes on the path, and writes the target.

    Attributes:
        name: with its namespace, such as ``user.origin``.
        value: None removes the attribute.
        create, replace: HDFS's flags: whether a missing attribute may be created, and an existing one replaced.
    """

    path: NsPath
    name: str
    value: bytes | None
    create: bool = True
    replace: bool = True

    def execute(self, view: View, context: OperationContext) -> Changes[None]:
        """Return the changes that set or remove the extended attribute.

        Raises:
            PathNotFoundError, PermissionDeniedError, InvalidRequestError: see the message.
        """
        (chain,) = view.chains
        inode = get_unfrozen_target(chain, context)
        _check_xattr_name(chain, self.name, context)
        name = stored_xattr_name(self.name)
        xattrs = dict(inode.xattrs)
        if self.value is None:
            if xattrs.pop(name, None) is None:
                raise XattrError("the inode has no such extended attribute: check the name", name=self.name)
        else:
            self._add_xattr(xattrs, name, self.value)
        return Changes(None, puts={chain.target_key: replace(inode, xattrs=xattrs)})

    def _add_xattr(self, xattrs: dict[str, bytes], name: str, value: bytes) -> None:
        if not (self.replace if name in xattrs else self.create):
            word = "exists already" if name in xattrs else "does not exist"
            raise XattrError(f"the extended attribute {word}: change the flags", name=self.name)
        if not isinstance(value, bytes):
            raise InvalidRequestError("the value of an extended attribute is bytes: encode it", name=self.name)
        xattrs[name] = value
        size = len(name.partition(".")[2].encode()) + len(value)
        if size > _MAX_XATTR_BYTES:
            raise InvalidRequestError(
                f"an extended attribute has at most {_MAX_XATTR_BYTES} bytes with its name: shorten it", name=self.name
            )
        if len(xattrs) > _MAX_XATTRS:
            raise XattrError(f"an inode has at most {_MAX_XATTRS} extended attributes: remove some", name=self.name)


def stored_xattr_name(name: str) -> str:
    """Return the name under which an attribute is stored: its namespace is in lower case."""
    prefix, dot, rest = name.partition(".")
    return prefix.lower() + dot + rest


def _check_xattr_name(chain: ResolvedPath, name: str, context: OperationContext) -> None:
    """Check that the caller may change an attribute.

    Who may write may change ``user.`` attributes, but only the owner of a sticky directory; only the superuser may
    change ``trusted.`` attributes; the others belong to HDFS itself.
    """
    check_stored_name(name, "an extended attribute", _MAX_XATTR_BYTES + max(map(len, _XATTR_NAMESPACES)))
    prefix = next((one for one in _XATTR_NAMESPACES if name.lower().startswith(one)), None)
    if prefix is None or len(name) == len(prefix):
        raise InvalidRequestError(
            "the name of an extended attribute begins with user., trusted., system., security. or raw.: add one",
            name=name,
        )
    if prefix == "user.":
        target = chain.target
        if target is not None and target.is_directory and target.mode & STICKY:
            context.caller.check_owner(chain)
        context.caller.check(chain, len(chain.path.names), WRITE)
    elif prefix == "trusted.":
        context.caller.check_superuser("change trusted.* attributes")
    else:
        raise PermissionDeniedError("nobody may change this attribute: use a name in user. or trusted.", name=name)
