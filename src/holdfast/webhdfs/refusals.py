"""Refuse the operations for features that a namespace does not have, in HDFS's words for features that are off."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.webhdfs.calls import Answer, Call
from holdfast.webhdfs.failures import UNSUPPORTED, RequestRefusedError


def _refuse(message: str, java_class: str, *, is_new: bool = False) -> Callable[[Call], Answer]:
    def refuse(call: Call) -> Answer:
        """Refuse the operation, if the caller may see the path, unless the path would be a new one."""
        if not is_new:
            call.namespace.status(call.path)
        raise RequestRefusedError(message.replace("{path}", call.path), java_class)

    return refuse


_PROTOCOL = "org.apache.hadoop.hdfs.protocol."
_ARGUMENT = "org.apache.hadoop.HadoopIllegalArgumentException"

acls = _refuse(
    "The ACL operation has been rejected.  Support for ACLs has been disabled: a namespace has modes and groups only.",
    _PROTOCOL + "AclException",
)
allow_snapshot = _refuse("A namespace has no snapshots: copy the tree instead.", UNSUPPORTED)
snapshots = _refuse("Directory is not a snapshottable directory: {path}", _PROTOCOL + "SnapshotException")
snapshot_diff = _refuse(
    "The path {path} is neither snapshottable nor under a snapshot root!", _PROTOCOL + "SnapshotException"
)
symlinks = _refuse("Symlinks not supported", UNSUPPORTED, is_new=True)
link_target = _refuse("Path {path} is not a symbolic link", "java.io.IOException")
set_storage_policy = _refuse(
    "Failed to set storage policy: the object store decides where data are.", "java.io.IOException"
)
satisfy_storage_policy = _refuse(
    "Cannot request to satisfy storage policy: the object store decides where data are.",
    "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException",
)
set_ec_policy = _refuse(
    "The policy does not match any enabled erasure coding policies: []. The object store decides how data are kept.",
    _ARGUMENT,
)
unset_ec_policy = _refuse("No erasure coding policy explicitly set on {path}", _PROTOCOL + "NoECPolicySetException")
quota_by_storage_type = _refuse("A namespace has no storage types: set a quota of space.", UNSUPPORTED)
