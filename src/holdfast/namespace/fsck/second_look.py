"""Look up the paths of what a pass has found.

The first pass keeps no names and no lists of references, because of the memory. So, and only if something was found,
the inodes are read again: once for the files that refer to suspect blobs, and once for the names of directories.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.errors import CorruptDataError
from holdfast.namespace.fsck.checkers.blobs import DAMAGED_BLOBS, MISSING_BLOBS, SHARED_BLOBS, SHORT_BLOBS
from holdfast.namespace.fsck.directories import WAITING
from holdfast.namespace.fsck.facts import Facts
from holdfast.namespace.fsck.findings import Finding, FindingKind, Suspect
from holdfast.namespace.fsck.progress import Progress
from holdfast.namespace.fsck.survey import records_of
from holdfast.namespace.inode import Inode, decode_inode
from holdfast.namespace.keys import ROOT_ID, ROOT_KEY, id_of, name_of, parent_of
from holdfast.transactions.base import SnapshotReader

_MOST_LEVELS = 2000


def look_up(
    reader: SnapshotReader, facts: Facts, found: Sequence[tuple[FindingKind, Suspect]], progress: Progress
) -> list[Finding]:
    """Return the findings of suspects, with their paths.

    Args:
        reader: the snapshot of the facts.
    """
    references = _References.read(reader, facts, [suspect for _, suspect in found], progress)
    located = [one for kind, suspect in found for one in _located(kind, suspect, facts, references)]
    namer = _Namer(facts)
    namer.read(reader, [one.key for one in located], progress)
    return [
        Finding(
            kind=one.kind,
            path=namer.path(one.key) if one.key else "",
            keys=one.keys,
            blob=one.suspect.blob or one.suspect.object,
            number=one.suspect.number or one.suspect.directory or 0,
            version=one.suspect.version,
            detail=one.suspect.detail,
        )
        for one in located
    ]


@dataclass(frozen=True, slots=True)
class _Located:
    """A finding without its path; `key` is that of the inode whose path it is, or empty."""

    kind: FindingKind
    suspect: Suspect
    key: bytes
    keys: Sequence[bytes]


def _located(kind: FindingKind, suspect: Suspect, facts: Facts, references: _References) -> Iterator[_Located]:
    if suspect.key:
        has_path = suspect.key[:1] in (b"i", b"r")
        yield _Located(kind, suspect, suspect.key if has_path else b"", (suspect.key,))
    elif suspect.number:
        keys = sorted(references.of_id[suspect.number], key=lambda key: _is_deleted(facts, key))
        yield _Located(kind, suspect, keys[0] if keys else b"", keys)
    elif kind == SHARED_BLOBS.kind:
        files = sorted(set(references.of_blob[suspect.blob]), key=lambda key: _is_deleted(facts, key))
        if not _is_deleted(facts, files[0]):
            yield _Located(kind, suspect, files[-1], files)
    elif suspect.blob:
        for key in dict.fromkeys(references.of_blob[suspect.blob]):
            if kind in (MISSING_BLOBS.kind, SHORT_BLOBS.kind, DAMAGED_BLOBS.kind) and _is_deleted(facts, key):
                continue  # nobody misses it
            yield _Located(kind, suspect, key, (key, *references.notes[suspect.blob]))
    else:
        yield _Located(kind, suspect, b"", ())


def _is_deleted(facts: Facts, key: bytes) -> bool:
    """Check whether an inode is in a deleted tree."""
    parent = parent_of(key)
    return parent in facts.deleted or facts.directories.region(parent) == WAITING


@dataclass(slots=True)
class _References:
    """What refers to what: the keys of inodes by blob and by id, and of garbage notes by blob."""

    of_blob: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    of_id: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    notes: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))

    @staticmethod
    def read(reader: SnapshotReader, facts: Facts, suspects: Collection[Suspect], progress: Progress) -> _References:
        found = _References()
        blobs = {suspect.blob for suspect in suspects if suspect.blob}
        numbers = {suspect.number for suspect in suspects if suspect.number and not suspect.key}
        if blobs or numbers:
            for key, inode in _inodes(reader, facts, "references", progress):
                if inode.id in numbers:
                    found.of_id[inode.id].append(key)
                for extent in inode.extents:
                    if extent.blob in blobs:
                        found.of_blob[extent.blob].append(key)
        noted = {blob for blob, _ in facts.referenced_notes}
        for key, _ in records_of(reader, b"g") if noted else ():
            blob = key[9:].decode(errors="replace")
            if blob in noted:
                found.notes[blob].append(key)
        return found


def _inodes(reader: SnapshotReader, facts: Facts, stage: str, progress: Progress) -> Iterator[tuple[bytes, Inode]]:
    """Yield all inodes that can be read."""
    for number, (key, record) in enumerate(records_of(reader, b"i"), 1):
        if number % 1000 == 0:
            progress(stage, number, 0)
        if len(key) < len(ROOT_KEY):
            continue
        try:
            yield key, decode_inode(key, record.value)
        except CorruptDataError:
            continue  # a finding of its own


class _Namer:
    """Finds the paths of inodes."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._names: dict[int, bytes] = {}

    def read(self, reader: SnapshotReader, keys: Collection[bytes], progress: Progress) -> None:
        """Read the names of all directories above some inodes."""
        wanted = {number for key in keys if len(key) >= len(ROOT_KEY) for number in self._above(_first(key))}
        wanted.discard(ROOT_ID)
        if wanted:
            for key, inode in _inodes(reader, self._facts, "names", progress):
                if inode.is_directory and inode.id in wanted:
                    self._names.setdefault(inode.id, name_of(key))

    def _above(self, number: int) -> list[int]:
        """Return the ids from a directory upward, as far as they lead."""
        found: list[int] = []
        seen = set()
        at: int | None = number
        while at is not None and at not in seen and len(found) < _MOST_LEVELS:
            seen.add(at)
            found.append(at)
            at = None if at == ROOT_ID else self._facts.directories.parent(at)
        return found

    def path(self, key: bytes) -> str:
        """Return the path of an inode; if it cannot be reached from the root, from where it hangs."""
        if key == ROOT_KEY:
            return "/"
        if len(key) < len(ROOT_KEY):
            return ""
        above = self._above(_first(key))
        names = [self._names.get(number, b"?") for number in reversed(above) if number in self._names]
        if key[:1] == b"i" and name_of(key):
            names.append(name_of(key))
        top = "" if above[-1] == ROOT_ID else f"(inode {above[-1]})"
        return top + "/" + b"/".join(names).decode(errors="backslashreplace")


def _first(key: bytes) -> int:
    """Return the first directory above an inode; for a deleted tree, the directory itself."""
    return parent_of(key) if key[:1] == b"i" else id_of(key)
