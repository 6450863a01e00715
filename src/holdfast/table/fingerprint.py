"""Fingerprint the files of a destination that Holdfast did not write, to detect later additions and changes."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator

from holdfast.commit.ids import file_owner
from holdfast.stores.base import ObjectInfo

_BITS = 256


class Fingerprint:
    """A number that identifies a set of files by their paths, sizes and times, regardless of their order."""

    def __init__(self) -> None:
        self._sum = 0

    def passing(self, files: Iterable[tuple[str, ObjectInfo]]) -> Iterator[tuple[str, ObjectInfo]]:
        """Yield the files unchanged, and add to the set those that are not empty and that Holdfast did not write."""
        for path, info in files:
            if info.size_bytes and file_owner(path) is None:
                text = f"{path}\0{info.size_bytes}\0{info.modified_at_s!r}"
                self._sum += int.from_bytes(hashlib.sha256(text.encode(errors="surrogatepass")).digest(), "big")
            yield path, info

    def text(self) -> str:
        """Return the number as a hexadecimal string, to be stored in a log record."""
        return f"{self._sum % 2**_BITS:064x}"


def fingerprint(files: Iterable[tuple[str, ObjectInfo]]) -> str:
    """Return the fingerprint of the files in a complete listing."""
    found = Fingerprint()
    deque(found.passing(files), maxlen=0)
    return found.text()
