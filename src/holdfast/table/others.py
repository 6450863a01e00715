"""The files of a destination that Holdfast did not name, told from those that were there when they were looked at."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator

from holdfast.commit.ids import file_owner
from holdfast.stores.base import ObjectInfo

__all__ = ["Fingerprint", "fingerprint"]

_BITS = 256


class Fingerprint:
    """A number that tells sets of files apart by their paths, sizes and times, in whatever order they come."""

    def __init__(self) -> None:
        self._sum = 0

    def passing(self, files: Iterable[tuple[str, ObjectInfo]]) -> Iterator[tuple[str, ObjectInfo]]:
        """The files as they come; those with bytes that Holdfast did not name count."""
        for path, info in files:
            if info.size_bytes and file_owner(path) is None:
                text = f"{path}\0{info.size_bytes}\0{info.modified_at_s!r}"
                self._sum += int.from_bytes(hashlib.sha256(text.encode(errors="surrogatepass")).digest(), "big")
            yield path, info

    def text(self) -> str:
        """The number, for a record."""
        return f"{self._sum % 2**_BITS:064x}"


def fingerprint(files: Iterable[tuple[str, ObjectInfo]]) -> str:
    """That of all files of a listing."""
    found = Fingerprint()
    deque(found.passing(files), maxlen=0)
    return found.text()
