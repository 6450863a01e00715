"""List the files of a local tree in key order, and its unfinished files and uploads."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
from collections.abc import Iterator

from holdfast.stores.base import ObjectInfo, ObjectPage, UploadInfo
from holdfast.stores.local.tree import HIDDEN_PREFIX, etag_of, parse_hidden, symlinked_directory_error

_WAITING = 16
_PEEK = 1000  # a caller that asks for fewer keys usually tests whether there are any, and does not ask for more
# Deleted in the meantime; or a link that is dangling, points below a file, or points to itself.
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class PagedTreeListing:
    """Lists the files of a directory tree in pages, in the order of their keys.

    Keeps the iterators of the latest listings until their next page is requested, because starting over would read and
    sort whole directories again.

    Args:
        root: the tree's directory.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._waiting: dict[str, tuple[ObjectInfo, Iterator[ObjectInfo]]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def page(self, prefix: str, start_after: str, max_keys: int, token: str | None) -> ObjectPage:
        """List files whose key starts with `prefix` and is greater than `start_after`, in UTF-8 byte order of keys.

        Reads only directories that can contain such a key. Omits dangling links, pipes, sockets, devices, and names
        that are not UTF-8, which cannot be keys. If the iterator that belongs to a token is no longer kept, starts a
        new listing after the token's key.

        Raises:
            InvalidRequestError: such a directory is a symbolic link: without its files, the listing would be wrong.
        """
        waiting = None
        goes_on = token is not None or max_keys >= _PEEK
        if token is not None:
            with self._lock:
                waiting = self._waiting.pop(token, None)
            start_after = token.partition("/")[2]
        if waiting is None:
            walk = _walk_files(self._root, prefix.rpartition("/")[0], prefix, start_after)
            found = list(itertools.islice(walk, max_keys))
        else:
            first, walk = waiting
            found = [first, *itertools.islice(walk, max_keys - 1)]
        following = next(walk, None)
        if following is None:
            return ObjectPage(found, None)
        # The number distinguishes this listing from an earlier one at the same key, which read older names.
        token = f"{next(self._numbers)}/{found[-1].key}"
        if not goes_on:
            return ObjectPage(found, token)
        with self._lock:
            self._waiting[token] = following, walk
            if len(self._waiting) > _WAITING:
                del self._waiting[next(iter(self._waiting))]
        return ObjectPage(found, token)

    def close(self) -> None:
        """Drop the iterators that wait for the next page to be requested."""
        with self._lock:
            self._waiting.clear()


def _walk_files(root: str, directory: str, prefix: str, start_after: str) -> Iterator[ObjectInfo]:
    below = [_list_sorted_names(root, f"{directory}/" if directory else "")]
    while below:
        base, names = below[-1]
        for name in names:
            key = base + name  # a directory's name ends in '/', which puts 'a-b' before 'a/b' as key order requires
            if not name.endswith("/"):
                if key > start_after and key.startswith(prefix) and (info := _describe_file(root, key)) is not None:
                    yield info
            elif (key.startswith(prefix) or prefix.startswith(key)) and (
                key > start_after or start_after.startswith(key)
            ):
                if os.path.islink(os.path.join(root, key[:-1])):
                    raise symlinked_directory_error(key[:-1])
                below.append(_list_sorted_names(root, key))
                break
        else:
            below.pop()


def _list_sorted_names(root: str, base: str) -> tuple[str, Iterator[str]]:
    """List a directory: return its key and the sorted names, or no names if it is a file or was deleted.

    Names of directories end in ``/``. Keeps nothing else about an entry: a directory may have a million of them.
    """
    try:
        scan = os.scandir(os.path.join(root, base.rstrip("/")))
    except (FileNotFoundError, NotADirectoryError):
        return base, iter(())
    with scan as entries:
        names = [
            f"{entry.name}/" if _is_directory(entry) else entry.name
            for entry in entries
            if not entry.name.startswith(HIDDEN_PREFIX) and _is_utf8(entry.name)
        ]
    return base, iter(sorted(names))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return False
        raise


def _is_utf8(name: str) -> bool:
    return name.isascii() or not any("\udc80" <= character <= "\udcff" for character in name)


def _describe_file(root: str, key: str) -> ObjectInfo | None:
    try:
        status = os.stat(os.path.join(root, key))
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None
        raise  # a file that cannot be examined still exists: a listing without it would be wrong
    if not stat.S_ISREG(status.st_mode):
        return None
    return ObjectInfo(key, status.st_size, etag_of(status), status.st_mtime)


def walk_pending_uploads(root: str, prefix: str) -> Iterator[UploadInfo]:
    """Yield uploads and unfinished files below `prefix`, including those of dead processes, in no particular order."""
    directory = prefix.rpartition("/")[0]
    for path, directories, files in os.walk(os.path.join(root, directory)):
        base = os.path.relpath(path, root)
        base = "" if base == "." else f"{base}/"
        for entry in (*directories, *files):
            hidden = parse_hidden(entry)
            if hidden is not None and (base + hidden[1]).startswith(prefix):
                try:
                    status = os.lstat(os.path.join(path, entry))
                except FileNotFoundError:
                    continue  # finished in the meantime
                yield UploadInfo(base + hidden[1], hidden[0], status.st_mtime)
        directories[:] = [name for name in directories if not name.startswith(HIDDEN_PREFIX)]
