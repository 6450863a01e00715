"""Make and parse the keys of the records in a namespace's database. The first byte of a key is the kind of the record.

| key | record |
|---|---|
| ``i`` parent id, name | an inode: the primary key of paper 004 (Table 1), so the children of a directory are a range |
| ``t`` directory id | the last modification of a directory's entries, as its number: milliseconds since the epoch |
| ``w`` directory id | where a directory was last renamed to: the directories on its path |
| ``p`` token | a pending upload of the object store `object_store`, with its parts |
| ``u`` quota id, ``n`` or ``s`` | what a directory with a quota uses, as its number: names, or bytes |
| ``l`` file id | the lease of a file that is being written |
| ``s`` blob | the bytes of a small file |
| ``r`` inode id | the root of a tree that was deleted and waits for its collection |
| ``g`` time, blob | a blob that no file refers to anymore, since that time |
| ``q`` digest | that a request of a server's client took effect: see `receipts` |
| ``a`` digest | a token of a client of a server, by the digest of its secret |
| ``x`` name | one of a kind: the configuration, the leader, who repairs or sweeps, when damaged records were last |
|            | repaired |

Ids are 16 bytes, most significant first, so keys sort by id.

Commits lock records in the order of their keys. An operation that locks what it reads has locked a file's inode before
it knows which lease and which bytes to lock, so their keys sort behind those of inodes: else it would run into a
deadlock with every commit that replaces the same file.
"""

from __future__ import annotations

import hashlib
from struct import Struct
from typing import TypeGuard

from holdfast.errors import CorruptDataError
from holdfast.runtime import Environment

# --- ids of inodes ----------------------------------------------------------------------------------------------------
# An id is drawn, not reserved: a database that forgets a reservation would give its ids to two clients, and two
# directories with one id have one list of entries. The time comes first, so that the entries of new directories are
# neighbors in the database's index, as in RFC 9562 (UUID version 7).
ID_BYTES = 16
MOST_ID = (1 << 8 * ID_BYTES) - 2
"""The largest id: a range of keys ends with the id after it."""

_RANDOM_BITS = 86
_MILLISECONDS = 2**42


def new_inode_id(environment: Environment) -> int:
    """Return a new random inode id: the milliseconds since the epoch, in 42 bits, then 86 random bits.

    A wrong clock does no harm: the time only makes the ids of new directories neighbors in the database.
    """
    now_ms = int(environment.clock.now_s() * 1000) % _MILLISECONDS
    random = int(environment.ids.token() + environment.ids.token(), 16) % (1 << _RANDOM_BITS)
    return min(now_ms << _RANDOM_BITS | random, MOST_ID)


def is_id(value: object) -> TypeGuard[int]:
    """Return whether a value that was read from a record is a valid inode id."""
    return type(value) is int and 0 < value <= MOST_ID


_TIME = Struct(">Q")
_BEHIND_ID = 1 + ID_BYTES
_BEHIND_TIME = 1 + _TIME.size


def _pack_id(number: int) -> bytes:
    return number.to_bytes(ID_BYTES, "big")


NO_PARENT = 0
ROOT_ID = 1
CONFIGURATION = b"xconfiguration"
LEADER = b"xleader"
MAINTENANCE = b"xmaintenance"
DAMAGED = b"xdamaged"
SERVERS = b"xserver/"
"""What the keys of the records begin with in which processes of servers tell that they live."""

ANSWERS = b"xanswers/"
"""What the keys of their records about answers begin with."""


def inode_key(parent_id: int, name: bytes) -> bytes:
    """Return the key of the inode record of the entry `name` of a directory."""
    return b"i" + _pack_id(parent_id) + name


ROOT_KEY = inode_key(NO_PARENT, b"")


def parent_id_in_key(key: bytes) -> int:
    """Return the inode id of the parent directory, from the key of an inode record."""
    return int.from_bytes(key[1:_BEHIND_ID], "big")


def entry_name_in_key(key: bytes) -> bytes:
    """Return the name of the entry (UTF-8), from the key of an inode record."""
    return key[_BEHIND_ID:]


def id_in_key(key: bytes) -> int:
    """Return the id in the key of a record: an inode id for the kinds l, r, w and t, a quota id for a usage counter
    (kind u).
    """
    return int.from_bytes(key[1:_BEHIND_ID], "big")


def children_range(directory_id: int) -> tuple[bytes, bytes]:
    """Return the range of keys that contains the inode records of a directory's children: the first key, and the end,
    which does not belong to it.
    """
    return b"i" + _pack_id(directory_id), b"i" + _pack_id(directory_id + 1)


def kind_range(kind: bytes) -> tuple[bytes, bytes]:
    """Return the range of keys of all records of one kind, such as ``b"l"``: the first key, and the end, which does not
    belong to it.
    """
    return kind, bytes([kind[0] + 1])


def data_key(blob: str) -> bytes:
    """Return the key of the record with the bytes of a small blob, which is in the database."""
    return b"s" + blob.encode()


def rename_record_key(directory_id: int) -> bytes:
    """Return the key of the record that says where a directory was last renamed to."""
    return b"w" + _pack_id(directory_id)


def blob_name_in_key(key: bytes) -> str:
    """Return the name of a blob, from the key of a small blob's bytes or of a garbage note.

    Raises:
        CorruptDataError: the name is not valid UTF-8. Run fsck.
    """
    try:
        return (key[_BEHIND_TIME:] if key[:1] == b"g" else key[1:]).decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError("a record names no blob: run holdfast namespace fsck", key=key) from error


def times_key(directory_id: int) -> bytes:
    """Return the key of the record with the modification time of a directory's entries."""
    return b"t" + _pack_id(directory_id)


def usage_key(quota_id: int, what: bytes) -> bytes:
    """Return the key of a usage counter of a quota, for `what`: ``b"n"`` counts names, ``b"s"`` space in bytes."""
    return b"u" + _pack_id(quota_id) + what


def directory_record_keys(directory_id: int, quota_id: int) -> list[bytes]:
    """Return the keys of the records that a directory may have besides its inode: place (where it was
    renamed to), times, and usage counters if `quota_id` is not 0. They are deleted with the directory.
    """
    keys = [rename_record_key(directory_id), times_key(directory_id)]
    return [*keys, usage_key(quota_id, b"n"), usage_key(quota_id, b"s")] if quota_id else keys


def lease_key(file_id: int) -> bytes:
    """Return the key of the lease of a file, given its inode id."""
    return b"l" + _pack_id(file_id)


def upload_key(token: str) -> bytes:
    """Return the key of the record of a pending upload. A token that is not valid Unicode gets a key that no upload
    has.
    """
    return b"p" + token.encode(errors="backslashreplace")


def deleted_key(inode_id: int) -> bytes:
    """Return the key of the record of a deleted tree that waits for its collection, given the inode id of its root."""
    return b"r" + _pack_id(inode_id)


def garbage_key(since_ms: int, blob: str) -> bytes:
    """Return the key of a garbage note, which says since when no file refers to `blob`, in epoch milliseconds."""
    return b"g" + _TIME.pack(since_ms) + blob.encode()


def receipt_key(*parts: str) -> bytes:
    """Return the key of the receipt of a request, given what the request is looked up by, such as its user and path."""
    digest = hashlib.blake2b(digest_size=ID_BYTES)
    for part in parts:
        encoded = part.encode(errors="surrogatepass")
        digest.update(b"%d:%b" % (len(encoded), encoded))
    return b"q" + digest.digest()


def token_key(digest: bytes) -> bytes:
    """Return the key of the record of a client's token, given the digest of its secret."""
    return b"a" + digest


def answers_key(server: str) -> bytes:
    """Return the key of the record in which a process of a server says which of its answers were delivered."""
    return ANSWERS + server.encode()
