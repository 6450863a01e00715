"""Records that are damaged raise `CorruptDataError`, and nothing else."""

from __future__ import annotations

import json

import pytest

from holdfast.errors import CorruptDataError
from holdfast.namespace.blobs import BlobStore, file_id_in_blob_name
from holdfast.namespace.inode import Inode, InodeKind, decode_inode, encode_inode
from holdfast.namespace.keys import MOST_ID, deleted_key, inode_key, lease_key
from holdfast.namespace.maintenance import LockTerm
from holdfast.namespace.other_records import METADATA, DeletedTree, Lease, decode_metadata
from holdfast.runtime import SystemIds
from holdfast.stores.memory import MemoryStore

_DIRECTORY = Inode(id=5, kind=InodeKind.DIRECTORY, mode=0o755, owner="o", group="g", mtime_ms=1)
_FIELDS = json.loads(encode_inode(_DIRECTORY))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"7",
        b"[" * 100_000,
        json.dumps(_FIELDS | {"id": 2**128}).encode(),
        json.dumps(_FIELDS | {"id": 0}).encode(),
        json.dumps(_FIELDS | {"mtime": float("inf")}).encode(),
        json.dumps(_FIELDS | {"extents": [["a", 2**64, 0]]}).encode(),
        json.dumps(_FIELDS | {"moving_until": "abc"}).encode(),
    ],
)
def test_inodes(value: bytes) -> None:
    with pytest.raises(CorruptDataError):
        decode_inode(inode_key(1, b"a"), value)


@pytest.mark.parametrize(
    "value",
    [
        b"[]",
        b"[" * 100_000,
        b'{"holder":"a","renewed":Infinity,"key":"690000000000000001"}',
        b'{"holder":"a","renewed":1,"key":""}',
        b'{"holder":"a","renewed":1,"key":"780000000000000001"}',
        b'{"holder":1,"renewed":1,"key":"690000000000000001"}',
    ],
)
def test_leases(value: bytes) -> None:
    with pytest.raises(CorruptDataError):
        Lease.decode(lease_key(1), value)


DAMAGED = [b"", b"[]", b"7", b"null", b"[" * 100_000, b"[1", b'{"until":1%s,"holder":"a"}' % (b"0" * 400)]


@pytest.mark.parametrize("value", DAMAGED)
def test_a_damaged_term_is_over(value: bytes) -> None:
    assert LockTerm.decode(value) == LockTerm("", 0.0)


@pytest.mark.parametrize("value", [*DAMAGED[:-1], b"[" * 16_000])
def test_damaged_metadata_is_that_of_another_program(value: bytes) -> None:
    """Whoever may write a file may write this attribute: no reader of a table may stumble over it."""
    assert decode_metadata({METADATA: value}) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"charged": 7},
        {"charged": [-1]},
        {"charged": ["1"]},
        {"since": None},
        {"path": 1},
        {"inode": []},
        {"inode": _FIELDS | {"id": 6}},
        {"inode": _FIELDS | {"kind": "file"}},
    ],
)
def test_deleted_trees(change: dict[str, object]) -> None:
    tree = DeletedTree(_DIRECTORY, "/a", 1, (2, 3))
    assert DeletedTree.decode(deleted_key(5), tree.encode()) == tree
    with pytest.raises(CorruptDataError):
        DeletedTree.decode(deleted_key(5), json.dumps(json.loads(tree.encode()) | change).encode())


def test_names_of_blobs() -> None:
    blobs = BlobStore(MemoryStore(), "", SystemIds())
    assert file_id_in_blob_name(blobs.new_name(1)) == 1
    assert file_id_in_blob_name(blobs.new_name(MOST_ID)) == MOST_ID


@pytest.mark.parametrize("name", ["", "ab/1-x", "ab/+1-" + "0" * 22, "ab/0x1-" + "0" * 22, "ab/1-" + "g" * 22, "photo"])
def test_other_names_are_foreign(name: str) -> None:
    assert file_id_in_blob_name(name) is None
