"""Follow inodes that were moved: find the present path of a file that a writer opened under another one.

A key tells the parent's id, not the parent's key, so nothing leads from an inode up to the root. A writer needs that if
somebody renames its file, or a directory above it. So a lease contains its file's *trail*: the directories above it,
when the file was opened or last renamed. And the rename of a directory records its place, with the trail to there; a
directory without such a record is where it was created. Together they give the present path. It need not be exact: the
operation on it validates every inode on the path, and the writer.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from holdfast.errors import CorruptDataError
from holdfast.namespace.inode_ids import is_id
from holdfast.namespace.keys import ROOT_ID, id_of, name_of, parent_of, place_key
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import Chain
from holdfast.transactions.base import Backend

Trail: TypeAlias = tuple[tuple[int, bytes], ...]
"""Directories on a path, from the one below the root down, each with its id and its name."""


def trail_of(chain: Chain, depth: int) -> Trail:
    """Return the directories on a path, down to a depth; the root has depth 0."""
    return tuple((chain.inodes[at].id, chain.path.names[at - 1]) for at in range(1, depth + 1))


def trail_fields(trail: Trail) -> list[list[int | str]]:
    """Return a trail as JSON has it."""
    return [[number, name.decode()] for number, name in trail]


def trail_from(fields: object) -> Trail:
    """Return the trail in JSON fields.

    Raises:
        ValueError, TypeError: it is not one.
    """
    if not isinstance(fields, list):
        raise TypeError("not a list")
    trail = tuple((number, name) for number, name in fields)
    if any(not is_id(number) or type(name) is not str for number, name in trail):
        raise ValueError("not ids and names")
    return tuple((number, name.encode()) for number, name in trail)


def encode_trail(trail: Trail) -> bytes:
    """Return the value of the record of a directory's place: the trail to it, itself included."""
    return json.dumps(trail_fields(trail), separators=(",", ":"), ensure_ascii=False).encode()


def decode_trail(key: bytes, value: bytes) -> Trail:
    """Return the trail in the record of a place.

    Raises:
        CorruptDataError: the record is not a place. Keep it, and run fsck.
    """
    try:
        trail = trail_from(json.loads(value))
        if not trail or trail[-1][0] != id_of(key):
            raise ValueError("another directory's record")
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptDataError(
            "a record of the namespace is not a directory's place: run holdfast namespace fsck", key=key
        ) from error
    return trail


def find_path(store: Backend, key: bytes, trail: Trail) -> NsPath | None:
    """Return the present path of an inode.

    Args:
        key: of the inode.
        trail: of its parent, at some time.

    Returns:
        None if the records contradict each other: they changed meanwhile.
    """
    above: dict[int, tuple[int, bytes]] = {}
    _note(above, trail)
    asked: set[int] = set()
    while True:
        names = [name_of(key)]
        seen: list[int] = []
        at = parent_of(key)
        while at != ROOT_ID:
            if at not in above or at in seen:
                return None
            seen.append(at)
            at, name = above[at]
            names.append(name)
        new = [place_key(number) for number in seen if number not in asked]
        if not new:
            return NsPath(tuple(reversed(names)))
        asked.update(seen)
        for place, record in store.get_many(new).items():
            found = decode_trail(place, record.value)
            above.pop(id_of(place))  # it was renamed since
            _note(above, found)


def _note(above: dict[int, tuple[int, bytes]], trail: Trail) -> None:
    """Note the parents of directories that are not known yet: those of others may be out of date."""
    parent = ROOT_ID
    for number, name in trail:
        above.setdefault(number, (parent, name))
        parent = number
