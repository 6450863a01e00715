"""List the files of a namespace by the prefix of their keys, each page from one snapshot.

The order is that of the keys as bytes. A token is the key of the last file of a page, so a listing survives any change
between two pages.

As in HDFS, whoever lists must be able to read and search every directory that the listing has to enter: a listing
without the files that the caller may not see would look complete.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

from holdfast.errors import InvalidRequestError
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import ROOT_KEY, children_range, inode_key, name_of
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import EXECUTE, READ, Caller
from holdfast.namespace.view import require_own_root, scan_pages
from holdfast.transactions.base import SnapshotReader

_PAGE = 1000


def list_files(
    reader: SnapshotReader, caller: Caller, prefix: str, after: str, limit: int, identity: str = ""
) -> list[tuple[NsPath, Inode]]:
    """Return the first files, in the order of the keys, whose key starts with `prefix` and comes after `after`.

    Raises:
        InvalidRequestError: one of the texts is not valid Unicode.
        CorruptDataError, FencedError: see `require_own_root`.
        PermissionDeniedError: the caller may not list one of the directories.
    """
    *names, beginning = _bytes_of(prefix, "prefix").split(b"/")
    above = b"".join(name + b"/" for name in names)
    last = _bytes_of(after, "start_after")
    if not last.startswith(above):
        if last > above:
            return []  # all keys below the directory come before
        last = b""
    found = _directory(reader, caller, tuple(names), identity)
    if found is None:
        return []
    rest = last[len(above) :]
    place = tuple(rest.split(b"/")) if rest else ()
    return list(islice(_walk(reader, caller, NsPath(tuple(names)), found, beginning, place), limit))


def _bytes_of(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(f"the {what} of a listing must be valid Unicode: change it", text=text) from error


def _directory(reader: SnapshotReader, caller: Caller, names: tuple[bytes, ...], identity: str) -> Inode | None:
    """Return the directory at a path, if there is one."""
    key = ROOT_KEY
    for depth, name in enumerate((*names, None)):
        record = reader.get_many([key]).get(key)
        inode = None if record is None else decode_inode(key, record.value)
        if key == ROOT_KEY:
            require_own_root(inode, identity)
        if inode is None or not inode.is_directory or name is None:
            return inode if inode is not None and inode.is_directory else None
        if not caller.may(inode, EXECUTE):
            caller.deny(inode, EXECUTE, str(NsPath(names[:depth])))
        key = inode_key(inode.id, name)
    return None


def _walk(
    reader: SnapshotReader, caller: Caller, path: NsPath, directory: Inode, beginning: bytes, after: tuple[bytes, ...]
) -> Iterator[tuple[NsPath, Inode]]:
    """Yield the files below a directory, without recursion: trees may be a thousand levels deep.

    Args:
        beginning: what the names in the directory itself start with.
        after: the components, below the directory, of the last file that was listed.
    """
    _check(caller, path, directory)
    waiting = [_entries(reader, path, directory, beginning, after)]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
            continue
        child_path, inode, child_after = entry
        if inode.is_directory:
            _check(caller, child_path, inode)
            waiting.append(_entries(reader, child_path, inode, b"", child_after))
        else:
            yield child_path, inode


def _check(caller: Caller, path: NsPath, directory: Inode) -> None:
    if not caller.may(directory, READ | EXECUTE):
        caller.deny(directory, READ | EXECUTE, str(path))


def _entries(
    reader: SnapshotReader, path: NsPath, directory: Inode, beginning: bytes, after: tuple[bytes, ...]
) -> Iterator[tuple[NsPath, Inode, tuple[bytes, ...]]]:
    """Yield the entries of one directory in the order of keys, from the place where the last page ended.

    In this order a directory ``a`` stands where its files do, at ``a/``: behind ``a-b``, though the name is shorter. So
    directories wait until the names have passed that place.
    """
    place = b"" if not after else after[0] + b"/" if len(after) > 1 else after[0]
    waiting: list[tuple[bytes, Inode]] = []
    for name, inode in _by_name(reader, directory, beginning, after[0] if after else b""):
        while waiting and waiting[0][0] < name:
            yield _entry(path, *heapq.heappop(waiting), after)
        here = name + b"/" if inode.is_directory else name
        if here < place or (here == place and not inode.is_directory):
            continue
        if inode.is_directory:
            heapq.heappush(waiting, (here, inode))
        else:
            yield path.child(name), inode, ()
    while waiting:
        yield _entry(path, *heapq.heappop(waiting), after)


def _entry(
    path: NsPath, here: bytes, inode: Inode, after: tuple[bytes, ...]
) -> tuple[NsPath, Inode, tuple[bytes, ...]]:
    name = here[:-1]
    return path.child(name), inode, after[1:] if after and name == after[0] else ()


def _by_name(reader: SnapshotReader, directory: Inode, beginning: bytes, first: bytes) -> Iterator[tuple[bytes, Inode]]:
    """Yield the entries of a directory in the order of their names, and before them the directories that stand behind.

    Args:
        first: begin with this name; but a directory whose name is shorter may have its place behind it.
    """
    shorter = [first[:count] for count in range(max(len(beginning), 1), len(first)) if first[count : count + 1] < b"/"]
    keys = [inode_key(directory.id, name) for name in shorter if name.startswith(beginning)]
    found = reader.get_many(keys) if keys else {}
    for key in keys:
        if key in found:
            inode = decode_inode(key, found[key].value)
            if inode.is_directory:
                yield name_of(key), inode
    start, end = children_range(directory.id)
    if beginning:
        start = inode_key(directory.id, beginning)
        end = inode_key(directory.id, beginning + b"\xff")  # no byte of UTF-8
    start = max(start, inode_key(directory.id, first))
    for page in scan_pages(reader, start, end, _PAGE):
        for key, record in page.records:
            yield name_of(key), decode_inode(key, record.value)
