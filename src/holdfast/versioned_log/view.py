"""Represent the state of a log that one listing shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """The state of a log at one moment.

    Attributes:
        oldest: number of the first retained entry, 1 for an empty log. All entries from `oldest` to `head` exist.
        head: number of the newest entry, 0 for an empty log.
        visible: numbers of the entries whose effect is visible.
        done: numbers of the entries that have no work left.
        stale: number and key of each record before `oldest`: leftovers of an interrupted trim, or entries that a late
            writer created under trimmed numbers (see `VersionedLog.append`).
        etag: of the newest entry, if the store makes transactions: then it may lose the entry, and another one may get
            its number. Empty on other stores, where none is lost, and whose etags may change.
    """

    oldest: int
    head: int
    visible: frozenset[int]
    done: frozenset[int]
    stale: tuple[tuple[int, str], ...] = ()
    etag: str = ""

    @property
    def unfinished(self) -> list[int]:
        """Return the numbers of the entries that are not done, oldest first."""
        return [seq for seq in range(self.oldest, self.head + 1) if seq not in self.done]


def record_name(seq: int, kind: str) -> str:
    """Return the file name of an entry (`kind` ``json``) or of one of its marks (``visible``, ``done``)."""
    return f"{seq:020d}.{kind}"
