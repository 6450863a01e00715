"""Carry out the operations that read: one function for each, by the name that clients use.

Source: Hadoop's WebHDFS REST API; ``NamenodeWebHdfsMethods`` for what it does not say.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from holdfast.errors import HoldfastError
from holdfast.namespace.errors import PathNotFoundError, PermissionDeniedError
from holdfast.namespace.listing import PAGE_SIZE, FileStatus, find_statuses
from holdfast.namespace.operations.attributes import stored_xattr_name
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, WRITE
from holdfast.webhdfs import documents
from holdfast.webhdfs.calls import Answer, Call
from holdfast.webhdfs.failures import IO_ERROR, RequestRefusedError

_MOST_ENTRIES = 1_000_000
"""The most entries of a directory in one answer. HDFS's client lists larger directories in pages."""

_ALL = 2**63 - 1
_NO_XATTR = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException"


def get_file_statuses(calls: Sequence[Call]) -> list[Answer | HoldfastError]:
    """GETFILESTATUS and GETFILELINKSTATUS of several callers, in one snapshot: there are no links."""
    found = find_statuses(
        calls[0].namespace.operations, [(NsPath.parse(call.path), call.namespace.caller) for call in calls]
    )
    return [_status_answer(call, status) for call, status in zip(calls, found, strict=True)]


def _status_answer(call: Call, found: FileStatus | HoldfastError | None) -> Answer | HoldfastError:
    if isinstance(found, HoldfastError):
        return found
    if found is None:
        return PathNotFoundError(f"File does not exist: {call.path}")
    return Answer(document={"FileStatus": documents.file_status(found, "")})


def get_file_status(call: Call) -> Answer:
    """GETFILESTATUS and GETFILELINKSTATUS of one caller."""
    (found,) = get_file_statuses([call])
    if isinstance(found, HoldfastError):
        raise found
    return found


def list_status(call: Call) -> Answer:
    """LISTSTATUS: the whole directory."""
    entries = []
    for entry in call.namespace.list(call.path):
        entries.append(documents.encode(documents.entry_status(call.path, entry)))
        if len(entries) > _MOST_ENTRIES:
            raise RequestRefusedError("the directory is too large for one answer: list it in pages", IO_ERROR)
    return Answer(body=b'{"FileStatuses":{"FileStatus":[%b]}}' % b",".join(entries))


def list_status_batch(call: Call) -> Answer:
    """LISTSTATUS_BATCH: the page after an entry."""
    page = call.namespace.list_page(call.path, start_after=call.parameters.text("startafter"), limit=PAGE_SIZE)
    return Answer(document=documents.directory_listing(call.path, page))


def get_content_summary(call: Call) -> Answer:
    """GETCONTENTSUMMARY."""
    return Answer(document=documents.content_summary(call.namespace.content_summary(call.path)))


def get_quota_usage(call: Call) -> Answer:
    """GETQUOTAUSAGE: from counters, if there is a quota."""
    found = call.namespace.quota_usage(call.path)
    if found.names_quota is not None or found.space_quota is not None:
        return Answer(document=documents.quota_usage(found))
    tree = call.namespace.content_summary(call.path)  # HDFS counts always
    counted = {"fileAndDirectoryCount": tree.files + tree.directories, "spaceConsumed": tree.space}
    return Answer(document={"QuotaUsage": {"quota": -1, "spaceQuota": -1, "typeQuota": {}, **counted}})


def get_file_checksum(call: Call) -> Answer:
    """GETFILECHECKSUM, at the address to which the client was sent."""
    return Answer(document=documents.file_checksum(call.namespace.checksum(call.path)))


def get_file_block_locations(call: Call) -> Answer:
    """GETFILEBLOCKLOCATIONS: all blocks are at this server."""
    status = call.namespace.open(call.path).status(call.path)
    offset = call.parameters.number("offset", 0, least=0) or 0
    length = call.parameters.number("length", _ALL, least=0)
    ranges = documents.block_ranges(status, offset, _ALL if length is None else length)
    return Answer(document=documents.block_locations(ranges, call.host, call.port))


def get_home_directory(call: Call) -> Answer:
    """GETHOMEDIRECTORY."""
    return Answer(document={"Path": call.namespace.caller.home})


def get_trash_root(call: Call) -> Answer:
    """GETTRASHROOT: one for all paths, in the caller's home."""
    return Answer(document={"Path": call.namespace.trash_root()})


def get_trash_roots(call: Call) -> Answer:
    """GETTRASHROOTS: that of the caller, or for all users those in /user into whose homes the caller may look."""
    homes = [call.namespace.caller.home]
    if call.parameters.truth("allusers", False) and call.namespace.find("/user") is not None:
        homes = [entry.path for entry in call.namespace.list("/user") if entry.is_directory]
    found = []
    for home in homes:
        with suppress(PermissionDeniedError):
            found.append(call.namespace.find(f"{home}/.Trash"))
    return Answer(document={"Paths": [documents.plain_status(one) for one in found if one is not None]})


_ACTIONS = {"r": READ, "w": WRITE, "x": EXECUTE, "-": 0}


def check_access(call: Call) -> Answer:
    """CHECKACCESS."""
    text = call.parameters.text("fsaction", "").lower()
    if len(text) != 3 or any(letter not in ("-", mask) for letter, mask in zip(text, "rwx", strict=True)):
        raise call.parameters.error("fsaction", "it is such as r-x")
    call.namespace.check_access(call.path, sum(_ACTIONS[letter] for letter in text))
    return Answer()


def get_xattrs(call: Call) -> Answer:
    """GETXATTRS: those of the given names, else all."""
    found = call.namespace.xattrs(call.path)
    names = [name for name in call.parameters.values.get("xattr.name", ()) if name]
    missing = [name for name in names if stored_xattr_name(name) not in found]
    if missing:
        raise RequestRefusedError("At least one of the attributes provided was not found.", _NO_XATTR)
    wanted = {stored_xattr_name(name): found[stored_xattr_name(name)] for name in names} if names else found
    encoding = call.parameters.choice("encoding", ("TEXT", "HEX", "BASE64"), "BASE64")
    return Answer(document=documents.xattrs(wanted, encoding))


def list_xattrs(call: Call) -> Answer:
    """LISTXATTRS."""
    return Answer(document={"XAttrNames": json.dumps(list(call.namespace.xattrs(call.path)))})


def get_acl_status(call: Call) -> Answer:
    """GETACLSTATUS: the mode of the path is all that there is."""
    found = call.namespace.status(call.path)
    sticky = bool(found.mode & 0o1000)
    status = {"entries": [], "group": found.group, "owner": found.owner, "stickyBit": sticky}
    return Answer(document={"AclStatus": {**status, "permission": f"{found.mode:o}"}})


_POLICY = {
    "copyOnCreateFile": False,
    "creationFallbacks": [],
    "id": 7,
    "name": "HOT",
    "replicationFallbacks": ["ARCHIVE"],
    "storageTypes": ["DISK"],
}
"""HDFS's default storage policy: it has no effect here."""


def get_all_storage_policies(call: Call) -> Answer:
    """GETALLSTORAGEPOLICY: only the default one."""
    return Answer(document={"BlockStoragePolicies": {"BlockStoragePolicy": [_POLICY]}})


def get_storage_policy(call: Call) -> Answer:
    """GETSTORAGEPOLICY."""
    call.namespace.status(call.path)
    return Answer(document={"BlockStoragePolicy": _POLICY})


def get_ec_policy(call: Call) -> Answer:
    """GETECPOLICY: no path has one, for which HDFS answers so, too (and its client cannot parse it)."""
    call.namespace.status(call.path)
    return Answer(body=b"null")


def get_ec_policies(call: Call) -> Answer:
    """GETECPOLICIES: there are none."""
    return Answer(document={"ErasureCodingPolicies": {"ErasureCodingPolicyInfo": []}})


def get_ec_codecs(call: Call) -> Answer:
    """GETECCODECS: there are none."""
    return Answer(document={"ErasureCodingCodecs": {}})


def get_block_locations(call: Call) -> Answer:
    """GET_BLOCK_LOCATIONS, for old clients: the length of the file, and no blocks that they could read elsewhere."""
    size = call.namespace.open(call.path).size
    blocks = {"fileLength": size, "isUnderConstruction": False, "isLastBlockComplete": True}
    return Answer(document={"LocatedBlocks": {**blocks, "locatedBlocks": [], "lastLocatedBlock": None}})


def get_server_defaults(call: Call) -> Answer:
    """GETSERVERDEFAULTS. Whether data are encrypted must be a JSON boolean: Hadoop's client casts it."""
    known = call.namespace.configuration
    defaults = {
        "blockSize": known.block_size,
        "bytesPerChecksum": 512,
        "checksumType": 2,  # CRC32C
        "defaultStoragePolicyId": 0,
        "encryptDataTransfer": False,
        "fileBufferSize": 4096,
        "keyProviderUri": "",
        "replication": known.replication,
        "trashInterval": int(call.trash_s // 60),  # minutes: clients then delete by moving there
        "writePacketSize": 65536,
    }
    return Answer(document={"FsServerDefaults": defaults})


def get_status(call: Call) -> Answer:
    """GETSTATUS: what all files take, and no end of what is left, as an object store has no capacity.

    All files are counted, unless the root has a quota: then there is a counter.
    """
    everything = call.namespace.as_user(call.namespace.configuration.superuser)
    counters = everything.quota_usage("/")
    has_quota = counters.names_quota is not None or counters.space_quota is not None
    used = counters.space if has_quota else everything.content_summary("/").space
    return Answer(document={"FsStatus": {"capacity": _ALL, "remaining": _ALL - used, "used": used}})


def get_snapshottable_directories(call: Call) -> Answer:
    """GETSNAPSHOTTABLEDIRECTORYLIST: there are none."""
    return Answer(document={"SnapshottableDirectoryList": None})
