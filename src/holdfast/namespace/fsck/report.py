"""Define the report of a check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from holdfast.namespace.fsck.findings import Finding, FindingKind, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a namespace contains.

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
    """The result of a check.

    Attributes:
        findings: what was found; of each kind, the first ones.
        totals: how much was found of each kind; only those kinds of which something was found.
        has_read_blobs: whether the objects were read, or only their sizes compared.
    """

    counts: Counts
    findings: Sequence[Finding]
    totals: Mapping[FindingKind, int]
    has_read_blobs: bool = False

    @property
    def damage(self) -> int:
        """How many findings are damage."""
        return sum(total for kind, total in self.totals.items() if kind.severity is Severity.DAMAGE)

    @property
    def leftovers(self) -> int:
        """How many findings are harmless."""
        return sum(self.totals.values()) - self.damage

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage

    def to_json(self) -> dict[str, object]:
        """Return the report as a JSON object."""
        return {
            "healthy": self.is_healthy,
            "blobs_read": self.has_read_blobs,
            "counts": asdict(self.counts),
            "totals": {kind.name: total for kind, total in self.totals.items()},
            "findings": [finding.to_json() for finding in self.findings],
        }
