"""List all operations that Hadoop 3.5's client can send, by method and name.

docs/reference/webhdfs.md has a table of them. To add an operation, write a function in `reading` or `changing` and a
line here. A change needs its one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.webhdfs import changing, delegation, reading, refusals
from holdfast.webhdfs.calls import Answer, Call
from holdfast.webhdfs.changing import DONE, TRUE
from holdfast.webhdfs.failures import UNSUPPORTED, RequestRefusedError
from holdfast.webhdfs.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of WebHDFS.

    Attributes:
        run: carries it out, in a thread, and returns the answer.
        repeated: returns the answer to a change that has taken effect before; None if the operation only reads, or may
            be done twice.
    """

    run: Callable[[Call], Answer]
    repeated: Callable[[Parameters], Answer] | None = None


def _change(run: Callable[[Call], Answer], answer: Answer = DONE) -> Operation:
    return Operation(run, lambda parameters: answer)


_RENAME = Operation(
    changing.rename,
    lambda parameters: DONE if parameters.text("renameoptions") else TRUE,
)

OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    "GET": {
        "CHECKACCESS": Operation(reading.check_access),
        "GETACLSTATUS": Operation(reading.get_acl_status),
        "GETALLSTORAGEPOLICY": Operation(reading.get_all_storage_policies),
        "GETCONTENTSUMMARY": Operation(reading.get_content_summary),
        "GETDELEGATIONTOKEN": Operation(delegation.get_delegation_token),
        "GETECCODECS": Operation(reading.get_ec_codecs),
        "GETECPOLICIES": Operation(reading.get_ec_policies),
        "GETECPOLICY": Operation(reading.get_ec_policy),
        "GETFILEBLOCKLOCATIONS": Operation(reading.get_file_block_locations),
        "GETFILECHECKSUM": Operation(reading.get_file_checksum),
        "GETFILELINKSTATUS": Operation(reading.get_file_status),
        "GETFILESTATUS": Operation(reading.get_file_status),
        "GETHOMEDIRECTORY": Operation(reading.get_home_directory),
        "GETLINKTARGET": Operation(refusals.link_target),
        "GETQUOTAUSAGE": Operation(reading.get_quota_usage),
        "GETSERVERDEFAULTS": Operation(reading.get_server_defaults),
        "GETSNAPSHOTDIFF": Operation(refusals.snapshot_diff),
        "GETSNAPSHOTDIFFLISTING": Operation(refusals.snapshot_diff),
        "GETSNAPSHOTLIST": Operation(refusals.snapshots),
        "GETSNAPSHOTTABLEDIRECTORYLIST": Operation(reading.get_snapshottable_directories),
        "GETSTATUS": Operation(reading.get_status),
        "GETSTORAGEPOLICY": Operation(reading.get_storage_policy),
        "GETTRASHROOT": Operation(reading.get_trash_root),
        "GETTRASHROOTS": Operation(reading.get_trash_roots),
        "GETXATTRS": Operation(reading.get_xattrs),
        "GET_BLOCK_LOCATIONS": Operation(reading.get_block_locations),
        "LISTSTATUS": Operation(reading.list_status),
        "LISTSTATUS_BATCH": Operation(reading.list_status_batch),
        "LISTXATTRS": Operation(reading.list_xattrs),
    },
    "PUT": {
        "ALLOWSNAPSHOT": Operation(refusals.allow_snapshot),
        "CANCELDELEGATIONTOKEN": Operation(delegation.cancel_delegation_token),
        "CREATESNAPSHOT": Operation(refusals.snapshots),
        "CREATESYMLINK": Operation(refusals.symlinks),
        "DISABLEECPOLICY": Operation(refusals.set_ec_policy),
        "DISALLOWSNAPSHOT": Operation(changing.disallow_snapshot),
        "ENABLEECPOLICY": Operation(refusals.set_ec_policy),
        "MKDIRS": _change(changing.mkdirs, TRUE),
        "MODIFYACLENTRIES": Operation(refusals.acls),
        "REMOVEACL": Operation(changing.remove_acl),
        "REMOVEACLENTRIES": Operation(refusals.acls),
        "REMOVEDEFAULTACL": Operation(changing.remove_acl),
        "REMOVEXATTR": _change(changing.remove_xattr),
        "RENAME": _RENAME,
        "RENAMESNAPSHOT": Operation(refusals.snapshots),
        "RENEWDELEGATIONTOKEN": Operation(delegation.renew_delegation_token),
        "SATISFYSTORAGEPOLICY": Operation(refusals.satisfy_storage_policy),
        "SETACL": Operation(refusals.acls),
        "SETECPOLICY": Operation(refusals.set_ec_policy),
        "SETOWNER": _change(changing.set_owner),
        "SETPERMISSION": _change(changing.set_permission),
        "SETQUOTA": _change(changing.set_quota),
        "SETQUOTABYSTORAGETYPE": Operation(refusals.quota_by_storage_type),
        "SETREPLICATION": _change(changing.set_replication, TRUE),
        "SETSTORAGEPOLICY": Operation(refusals.set_storage_policy),
        "SETTIMES": _change(changing.set_times),
        "SETXATTR": _change(changing.set_xattr),
    },
    "POST": {
        "CONCAT": _change(changing.concat),
        "TRUNCATE": _change(changing.truncate, TRUE),
        "UNSETECPOLICY": Operation(refusals.unset_ec_policy),
        "UNSETSTORAGEPOLICY": Operation(changing.unset_storage_policy),
    },
    "DELETE": {
        "DELETE": _change(changing.delete, TRUE),
        "DELETESNAPSHOT": Operation(refusals.snapshots),
    },
}
"""Those without the bytes of a file, which are in `transfers`: OPEN, CREATE and APPEND."""

TRANSFERS: Mapping[str, frozenset[str]] = {
    "GET": frozenset(("OPEN",)),
    "PUT": frozenset(("CREATE",)),
    "POST": frozenset(("APPEND",)),
    "DELETE": frozenset(),
}

REDIRECTED = frozenset(("GETFILECHECKSUM",)).union(*TRANSFERS.values())
"""Those that take two requests: some clients know a first answer by its status only."""


def find_operation(method: str, parameters: Parameters) -> str:
    """Return the name of the operation that a request asks for.

    Raises:
        RequestRefusedError: there is no such operation of this method, or the request names none.
    """
    name = parameters.text("op").upper()
    if name in ("", "NULL"):
        raise RequestRefusedError("op=NULL is not supported", UNSUPPORTED)
    if name not in OPERATIONS[method] and name not in TRANSFERS[method]:
        given = f"{parameters.text('op')[:100]} is not a valid {method} operation."
        raise RequestRefusedError(f'Invalid value for webhdfs parameter "op": {given}')
    return name
