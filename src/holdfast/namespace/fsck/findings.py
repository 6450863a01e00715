"""Define what a check can find."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.namespace.fsck.facts import Facts


class Severity(str, enum.Enum):
    """How bad a finding is."""

    DAMAGE = "damage"
    """Something is wrong: data cannot be read, cannot be reached, or is in danger."""
    LEFTOVER = "leftover"
    """Harmless: what a program that died left behind. A collection or a repair removes it."""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of finding.

    Attributes:
        name: identifies the kind in JSON.
        title: what is wrong, in a few words.
        next_act: what to do about it.
        repairable: whether `repair` does it.
    """

    name: str
    severity: Severity
    title: str
    next_act: str
    repairable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A finding before its path is looked up; it is known by the first of these that is given.

    Attributes:
        key: of a record.
        blob: its name; each file that refers to it becomes a finding.
        object: the name of an object of the store, to which nothing refers.
        number: an inode id; all inodes with it become one finding.
        directory: the id of a directory that does not exist.
        version: of the record, if only this version of it is one; 0 if it does not matter.
        detail: more about it, for a person.
    """

    key: bytes = b""
    blob: str = ""
    object: str = ""
    number: int = 0
    directory: int | None = None
    version: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a check has found.

    Attributes:
        path: for a person: of a file or a directory; empty if there is none.
        keys: of the records, the first one being the most important; empty for objects of the store.
        blob: the name of a blob or an object; empty if there is none.
        number: an inode id, or 0.
        version: see `Suspect`.
    """

    kind: FindingKind
    path: str = ""
    keys: Sequence[bytes] = ()
    blob: str = ""
    number: int = 0
    version: int = 0
    detail: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the finding as a JSON object."""
        return {
            "kind": self.kind.name,
            "severity": self.kind.severity.value,
            "path": self.path,
            "keys": [key.hex() for key in self.keys],
            "blob": self.blob,
            "inode": self.number,
            "detail": self.detail,
            "next": self.kind.next_act,
        }

    def __str__(self) -> str:
        where = self.path or self.blob or (self.keys[0].hex() if self.keys else f"inode {self.number}")
        return f"{self.kind.title}: {where}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True)
class Checker:
    """Looks for one kind of finding.

    Attributes:
        find: yields what is wrong with the facts.
        total: returns how much is wrong, if `find` does not yield all of it.
    """

    kind: FindingKind
    find: Callable[[Facts], Iterator[Suspect]]
    total: Callable[[Facts], int] | None = None
