"""Write text to a file that an error discards."""

from __future__ import annotations

import io
from typing import Any, Protocol, runtime_checkable

__all__ = ["Discardable", "TextFile"]


@runtime_checkable
class Discardable(Protocol):
    """A file that can be discarded, so that it does not count."""

    def discard(self) -> None:
        """Discard the file and close it. No-op after `close`."""
        ...


class TextFile(io.TextIOWrapper):
    """A text file over a binary one; leaving a ``with`` block with an error discards the file.

    `io.TextIOWrapper` itself closes the binary file then, and an incomplete file would count.
    """

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and isinstance(self.buffer, Discardable):
            self.buffer.discard()
        super().__exit__(kind, error, trace)
