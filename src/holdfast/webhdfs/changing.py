"""Carry out the operations that change the namespace in one step: one function for each.

Each has one answer when it has taken effect. So a request that arrives again gets it without another effect
(`holdfast.namespace.receipts`).

Source: Hadoop's WebHDFS REST API; ``NamenodeWebHdfsMethods`` for what it does not say.
"""

from __future__ import annotations

from typing import Any

from holdfast.namespace.errors import PermissionDeniedError
from holdfast.namespace.inode import DIRECTORY_MODE
from holdfast.namespace.operation import Operation
from holdfast.namespace.operations.names import Delete, Mkdirs, Rename
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import WRITE
from holdfast.namespace.trees import Kept, NewQuota
from holdfast.webhdfs.calls import Answer, Call
from holdfast.webhdfs.documents import decode_xattr_value, truth
from holdfast.webhdfs.failures import RequestRefusedError
from holdfast.webhdfs.parameters import Parameters

DONE = Answer()
TRUE = Answer(document=truth(True))
FALSE = Answer(document=truth(False))


def _permission(parameters: Parameters, default: int) -> int:
    """Return the mode of a new file or directory. There are no default ACLs, so the unmasked mode does not matter."""
    return parameters.mode("permission", default)


def mkdirs(call: Call) -> Answer:
    """MKDIRS: true also if the directory exists."""
    call.namespace.mkdirs(call.path, mode=_permission(call.parameters, DIRECTORY_MODE))
    return TRUE


def rename(call: Call) -> Answer:
    """RENAME: with options as ``rename2``, which raises; without as the old rename, which answers false."""
    target, options = find_destination(call.parameters), call.parameters
    if not options.text("renameoptions"):
        return TRUE if call.namespace.rename_into(call.path, target) else FALSE
    chosen = options.choices("renameoptions", ("NONE", "OVERWRITE", "TO_TRASH"))
    call.namespace.rename(call.path, target, overwrite="OVERWRITE" in chosen)
    return DONE


def find_destination(parameters: Parameters) -> str:
    """Return the path to which a rename moves."""
    found = parameters.require_text("destination")
    if not found.startswith("/"):
        raise parameters.error("destination", "it is an absolute path")
    return found


def delete(call: Call) -> Answer:
    """DELETE: false if nothing has the path."""
    done = call.namespace.delete(call.path, recursive=call.parameters.truth("recursive", False))
    return TRUE if done else FALSE


def concat(call: Call) -> Answer:
    """CONCAT."""
    call.namespace.concat(call.path, list_sources(call.parameters))
    return DONE


def list_sources(parameters: Parameters) -> tuple[str, ...]:
    """Return the paths of the files that are appended to another one."""
    return tuple(parameters.require_text("sources").split(","))


def truncate(call: Call) -> Answer:
    """TRUNCATE: always done at once, so the answer is true."""
    length = call.parameters.number("newlength", None, least=0)
    if length is None:
        raise RequestRefusedError("Required param newlength for op: TRUNCATE is null or empty")
    call.namespace.truncate(call.path, length)
    return TRUE


def set_permission(call: Call) -> Answer:
    """SETPERMISSION."""
    call.namespace.set_permission(call.path, call.parameters.mode("permission", DIRECTORY_MODE))
    return DONE


def set_owner(call: Call) -> Answer:
    """SETOWNER: the owner, the group, or both."""
    owner, group = call.parameters.text("owner"), call.parameters.text("group")
    if not owner and not group:
        raise RequestRefusedError("Both owner and group are empty.")
    call.namespace.set_owner(call.path, owner or None, group or None)
    return DONE


def set_times(call: Call) -> Answer:
    """SETTIMES: -1 leaves a time."""
    found = [call.parameters.number(name, -1) for name in ("modificationtime", "accesstime")]
    mtime_ms, atime_ms = (None if time in (None, -1) else time for time in found)
    call.namespace.set_times(call.path, mtime_ms, atime_ms)
    return DONE


def set_replication(call: Call) -> Answer:
    """SETREPLICATION: false if the path is no file."""
    replication = call.parameters.number("replication", call.namespace.configuration.replication)
    assert replication is not None
    return TRUE if call.namespace.set_replication(call.path, replication) else FALSE


def set_quota(call: Call) -> Answer:
    """SETQUOTA: the largest number leaves a quota as it is, and -1 removes it."""
    names, space = (_new_quota(call.parameters, name) for name in ("namespacequota", "storagespacequota"))
    call.namespace.set_quota(call.path, names=names, space=space)
    return DONE


def _new_quota(parameters: Parameters, name: str) -> NewQuota:
    given = parameters.number(name, None, least=-1)
    if given in (None, 2**63 - 1):
        return Kept.AS_IT_IS
    return None if given == -1 else given


def set_xattr(call: Call) -> Answer:
    """SETXATTR: the flag says whether the attribute may be new, and whether it may exist."""
    flags = call.parameters.choices("flag", ("CREATE", "REPLACE")) or frozenset(("CREATE", "REPLACE"))
    call.namespace.set_xattr(
        call.path,
        call.parameters.require_text("xattr.name"),
        decode_xattr_value(call.parameters.text("xattr.value")),
        create="CREATE" in flags,
        replace_existing="REPLACE" in flags,
    )
    return DONE


def remove_xattr(call: Call) -> Answer:
    """REMOVEXATTR."""
    call.namespace.remove_xattr(call.path, call.parameters.require_text("xattr.name"))
    return DONE


def remove_acl(call: Call) -> Answer:
    """REMOVEACL and REMOVEDEFAULTACL: there is none, so it is gone. Only its owner could have removed it."""
    caller, owner = call.namespace.caller, call.namespace.status(call.path).owner
    if not caller.is_superuser and caller.user != owner:
        raise PermissionDeniedError(f"Permission denied. user={call.user} is not the owner of inode={call.path}")
    return DONE


def disallow_snapshot(call: Call) -> Answer:
    """DISALLOWSNAPSHOT: no directory has snapshots. Only the superuser could have allowed them."""
    call.namespace.status(call.path)
    call.namespace.caller.check_superuser("disallow snapshots")
    return DONE


def unset_storage_policy(call: Call) -> Answer:
    """UNSETSTORAGEPOLICY: no path has one."""
    call.namespace.check_access(call.path, WRITE)
    return DONE


def make_operation(call: Call) -> Operation[Any] | None:
    """Return what a frequent change does as one operation, to be tried together with others; None if it is no such one.

    All that takes effect has one answer.
    """
    if call.operation == "MKDIRS":
        return Mkdirs(path=NsPath.parse(call.path), mode=_permission(call.parameters, DIRECTORY_MODE))
    if call.operation == "RENAME" and not call.parameters.text("renameoptions"):
        target = NsPath.parse(find_destination(call.parameters))
        return Rename(source=NsPath.parse(call.path), target=target, into=True, may_stay=True)
    if call.operation == "DELETE":
        return Delete(path=NsPath.parse(call.path), recursive=call.parameters.truth("recursive", False))
    return None
