"""Define the findings of a check, and its report."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources

Progress = Callable[[str, int, int], None]
"""Called from time to time with a stage, how much of it is done, and how much there is; 0 if that is unknown."""


def ignore_progress(stage: str, done: int, total: int) -> None:
    """Ignore a progress report: the default of callbacks of type `Progress`."""


class Severity(str, enum.Enum):
    """Whether a finding is damage or a harmless leftover."""

    DAMAGE = "damage"
    """Something is wrong: data cannot be read, cannot be reached, or is in danger."""
    LEFTOVER = "leftover"
    """Harmless: what a program that died left behind. A collection or a sweep removes it."""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of finding, such as a missing blob. `checks.sql` defines it and its query; `repair.REPAIRS` repairs it, if
    anything can.

    Attributes:
        name: identifies the kind in JSON.
        title: what is wrong, in a few words.
        next_act: what to do about it.
    """

    name: str
    severity: Severity
    title: str
    next_act: str


def _parse_kinds(sql: str) -> Mapping[str, FindingKind]:
    found: dict[str, dict[str, str]] = {}
    name = field = ""
    for line in sql.splitlines():
        word, _, text = line.removeprefix("-- ").partition(": ")
        if line.startswith("-- name: "):
            name, field = text, ""
        elif line.startswith(("-- damage: ", "-- leftover: ", "-- next: ")):
            field = word
            found.setdefault(name, {})[field] = text
        elif line.startswith("--   ") and field:
            found[name][field] += " " + line.removeprefix("--   ")
        else:
            field = ""
    return {
        name: FindingKind(name, severity, texts[severity.value], texts["next"])
        for name, texts in found.items()
        for severity in Severity
        if severity.value in texts
    }


FINDING_KINDS = _parse_kinds((resources.files(__package__) / "checks.sql").read_text("utf-8"))
"""The kinds of findings by name, in the order of `checks.sql`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One damage or leftover that a check has found, with the records and the blob that it concerns.

    Attributes:
        path: for a person: of a file or a directory; else empty.
        keys: of the records, the first one being the most important; empty for objects of the store.
        blob: the name of a blob or an object; else empty.
        number: an inode id, or 0.
        detail: more about it, for a person.
    """

    kind: FindingKind
    path: str = ""
    keys: Sequence[bytes] = ()
    blob: str = ""
    number: int = 0
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
class NamespaceCounts:
    """The numbers of files, bytes, blobs and other things in a namespace, as a check has counted them.

    Attributes:
        directories, files: in the tree, or in deleted trees.
        file_bytes: the length of all files.
        blobs, blob_bytes: objects of the store.
        small_blobs, small_blob_bytes: blobs in the database.
        in_progress: objects that no file refers to yet: their writer has a lease, or they are young.
        garbage: objects that will be deleted when their safety age is over.
        deleted_trees: directories that wait for their collection.
        leases, quotas: how many there are.
    """

    directories: int
    files: int
    file_bytes: int
    blobs: int
    blob_bytes: int
    small_blobs: int
    small_blob_bytes: int
    in_progress: int
    garbage: int
    deleted_trees: int
    leases: int
    quotas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a check: the findings, and what the namespace contains.

    Attributes:
        findings: what was found; of each kind, the first ones.
        totals: how much was found of each kind; only those kinds of which something was found.
        has_read_blobs: whether the objects were read, or only their sizes compared.
    """

    counts: NamespaceCounts
    findings: Sequence[Finding]
    totals: Mapping[FindingKind, int]
    has_read_blobs: bool = False

    @property
    def damage_count(self) -> int:
        """How many findings are damage."""
        return sum(total for kind, total in self.totals.items() if kind.severity is Severity.DAMAGE)

    @property
    def leftover_count(self) -> int:
        """How many findings are harmless leftovers."""
        return sum(self.totals.values()) - self.damage_count

    @property
    def is_healthy(self) -> bool:
        """Whether the check has found no damage."""
        return not self.damage_count

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {
            "healthy": self.is_healthy,
            "blobs_read": self.has_read_blobs,
            "counts": asdict(self.counts),
            "totals": {kind.name: total for kind, total in self.totals.items()},
            "findings": [finding.to_json() for finding in self.findings],
        }
