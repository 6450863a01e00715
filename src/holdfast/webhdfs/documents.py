"""Make the JSON documents that Hadoop's clients parse.

Source: Hadoop's ``JsonUtil``, and ``JsonUtilClient`` for what a client needs.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping

from holdfast.namespace.errors import FeatureUnsupportedError
from holdfast.namespace.file_reader import FileChecksum
from holdfast.namespace.listing import ContentSummary, FileStatus, ListPage, QuotaUsage

Document = Mapping[str, object]

_LONG = 2**63 - 1
UNLIMITED = -1


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(document: Document) -> bytes:
    """Return a document as it is sent."""
    return _encoder.encode(document).encode()


def truth(value: bool) -> Document:
    """Return the answer of an operation that is true or false."""
    return {"boolean": value}


def file_status(status: FileStatus, suffix: str) -> dict[str, object]:
    """Return the attributes of a file or directory.

    Args:
        suffix: its path below the path of the request: its name in a listing, else empty.
    """
    return {
        "accessTime": status.atime_ms,
        "blockSize": status.block_size,
        "childrenNum": 0,
        "fileId": status.id & _LONG,  # their ids are shorter; these bits of ours are random
        "group": status.group,
        "length": status.size,
        "modificationTime": status.mtime_ms,
        "owner": status.owner,
        "pathSuffix": suffix,
        "permission": f"{status.mode:o}",
        "replication": status.replication,
        "storagePolicy": 0,
        "type": "DIRECTORY" if status.is_directory else "FILE",
    }


def plain_status(status: FileStatus) -> Document:
    """Return the attributes of a file or directory under the names that listings of trash directories have."""
    return {
        "access_time": status.atime_ms,
        "block_replication": status.replication,
        "blocksize": status.block_size,
        "group": status.group,
        "isdir": status.is_directory,
        "length": status.size,
        "modification_time": status.mtime_ms,
        "owner": status.owner,
        "path": status.path,
        "permission": f"{status.mode:o}",
    }


def entry_status(path: str, entry: FileStatus) -> Document:
    """Return an entry of a directory, or the file at the path itself, whose suffix is empty."""
    return file_status(entry, "" if entry.path == path else entry.name)


def directory_listing(path: str, page: ListPage) -> Document:
    """Return a page of a directory, and whether more follow. Their number is unknown: one stands for all."""
    entries = {"FileStatuses": {"FileStatus": [entry_status(path, one) for one in page.entries]}}
    return {"DirectoryListing": {"partialListing": entries, "remainingEntries": int(page.more)}}


def content_summary(found: ContentSummary) -> Document:
    """Return the numbers of a tree."""
    summary: dict[str, object] = {
        "directoryCount": found.directories,
        "ecPolicy": "Replicated" if found.files else "",
        "fileCount": found.files,
        "length": found.size,
        "quota": UNLIMITED if found.names_quota is None else found.names_quota,
        "snapshotDirectoryCount": 0,
        "snapshotFileCount": 0,
        "snapshotLength": 0,
        "snapshotSpaceConsumed": 0,
        "spaceConsumed": found.space,
        "spaceQuota": UNLIMITED if found.space_quota is None else found.space_quota,
        "typeQuota": {},
    }
    return {"ContentSummary": summary}


def quota_usage(found: QuotaUsage) -> Document:
    """Return quotas and their usage."""
    usage = {
        "fileAndDirectoryCount": found.names,
        "quota": UNLIMITED if found.names_quota is None else found.names_quota,
        "spaceConsumed": found.space,
        "spaceQuota": UNLIMITED if found.space_quota is None else found.space_quota,
        "typeQuota": {},
    }
    return {"QuotaUsage": usage}


def file_checksum(found: FileChecksum) -> Document:
    """Return the checksum of a file."""
    checksum = {"algorithm": found.algorithm, "bytes": found.value.hex(), "length": len(found.value)}
    return {"FileChecksum": checksum}


# --- blocks -----------------------------------------------------------------------------------------------------------
# A file has no blocks. A client plans its reads by them, so the file is cut into pieces of the block size that its
# writer wished, and all of them are at the server.
def block_ranges(status: FileStatus, offset: int, length: int) -> list[tuple[int, int]]:
    """Return offset and length of the blocks of a file that a range touches."""
    size = max(status.block_size, 1)
    end = min(status.size, offset + length)
    first = offset // size * size
    return [(start, min(size, status.size - start)) for start in range(first, end, size)] if offset < end else []


def block_locations(ranges: Iterable[tuple[int, int]], host: str, port: int) -> Document:
    """Return where the blocks of a file are."""
    blocks = [
        {
            "cachedHosts": [],
            "corrupt": False,
            "hosts": [host],
            "length": length,
            "names": [f"{host}:{port}"],
            "offset": offset,
            "storageIds": [],
            "storageTypes": [],
            "topologyPaths": [f"/default-rack/{host}:{port}"],
        }
        for offset, length in ranges
    ]
    return {"BlockLocations": {"BlockLocation": blocks}}


# --- extended attributes ----------------------------------------------------------------------------------------------
def xattrs(found: Mapping[str, bytes], encoding: str) -> Document:
    """Return extended attributes.

    Args:
        encoding: TEXT, HEX or BASE64.
    """
    return {"XAttrs": [{"name": name, "value": _encode_value(value, encoding)} for name, value in found.items()]}


def _encode_value(value: bytes, encoding: str) -> str:
    if encoding == "HEX":
        return "0x" + value.hex()
    if encoding == "TEXT":
        return f'"{value.decode(errors="replace")}"'
    return "0s" + base64.b64encode(value).decode()


def decode_xattr_value(text: str) -> bytes:
    """Decode the value of an extended attribute: hexadecimal after 0x, base64 after 0s, or a text, perhaps in quotes.

    Raises:
        FeatureUnsupportedError: it is none of these.
    """
    try:
        if text[:2].lower() == "0x":
            return bytes.fromhex(text[2:])
        if text[:2].lower() == "0s":
            return base64.b64decode(text[2:], validate=True)
    except (ValueError, binascii.Error) as error:
        raise FeatureUnsupportedError("the value of an extended attribute is not encoded as it says: fix it") from error
    return (text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text).encode()
