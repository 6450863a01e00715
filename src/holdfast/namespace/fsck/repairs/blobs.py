"""Repair the relation of files and blobs."""

from __future__ import annotations

from dataclasses import replace

from holdfast.errors import NotFoundError
from holdfast.namespace.changes import Changes
from holdfast.namespace.frames import content_bytes, content_of
from holdfast.namespace.fsck.findings import Finding
from holdfast.namespace.fsck.repairs.workbench import Seen, Workbench
from holdfast.namespace.inode import Extent, Inode
from holdfast.namespace.keys import blob_of, data_key
from holdfast.namespace.view import Entry

_PIECE = 8 * 1024 * 1024


def attach_unowned(bench: Workbench, finding: Finding) -> bool:
    """Make a file of a blob that belongs to none, called like the blob."""
    blobs = bench.subject.blobs
    if finding.keys:
        (key,) = finding.keys
        record = bench.records([key]).get(key)
        if record is None:
            return False
        extent = Extent(blob_of(key), content_bytes(len(record.value)), inline=True)
        seen: dict[bytes, Entry | None] = {key: Entry(record.version, None)}
    else:
        try:
            info = blobs.store.head(blobs.key(finding.blob))
        except NotFoundError:
            return False
        extent = Extent(finding.blob, content_bytes(info.size_bytes))
        seen = {}
    name = f"blob-{extent.blob}".replace("/", "-").replace(":", "-")
    return bench.shelve(name, bench.new_file((extent,), {}), Changes(None), seen)


def delete_notes(bench: Workbench, finding: Finding) -> bool:
    """Delete the garbage notes of a blob that a file refers to."""
    seen = bench.inode(finding.keys[0])
    notes = bench.records(finding.keys[1:])
    if seen is None or not notes or finding.blob not in {extent.blob for extent in seen.inode.extents}:
        return False
    changes: Changes[None] = Changes(None)
    changes.deletes.update(notes)
    return bench.commit(changes, {seen.key: seen.entry})


def copy_shared(bench: Workbench, finding: Finding) -> bool:
    """Give every reference to a blob but the first a copy of its own."""
    is_taken = False
    done = False
    for key in finding.keys:
        seen = bench.inode(key)
        if seen is None:
            continue
        changed, data = _with_copies(bench, seen.inode, finding.blob, keeps_one=not is_taken)
        is_taken = is_taken or any(extent.blob == finding.blob for extent in seen.inode.extents)
        if changed != seen.inode:
            done = _put(bench, seen, changed, data) or done
    return done


def _put(bench: Workbench, seen: Seen, changed: Inode, data: dict[str, bytes]) -> bool:
    changes: Changes[None] = Changes(None)
    changes.puts[seen.key] = changed
    changes.new_values.update({data_key(blob): value for blob, value in data.items()})
    return bench.commit(changes, {seen.key: seen.entry})


def _with_copies(bench: Workbench, inode: Inode, blob: str, *, keeps_one: bool) -> tuple[Inode, dict[str, bytes]]:
    """Return the inode with copies of a blob, and the bytes of small copies by name."""
    extents: list[Extent] = []
    data: dict[str, bytes] = {}
    for extent in inode.extents:
        if extent.blob != blob or keeps_one:
            keeps_one = keeps_one and extent.blob != blob
            extents.append(extent)
        elif extent.inline:
            stored = bench.records([data_key(blob)])[data_key(blob)].value
            copy, copied = bench.subject.blobs.small(inode.id, content_of(blob, 0, extent.length, stored))
            data |= copied
            extents.append(copy)
        else:
            extents.append(_copy(bench, extent, inode.id))
    return replace(inode, extents=tuple(extents)), data


def _copy(bench: Workbench, extent: Extent, file_id: int) -> Extent:
    """Copy a blob, as far as the extent needs it, piece by piece."""
    writer = bench.subject.blobs.open_write(file_id)
    try:
        for start in range(0, extent.length, _PIECE):
            piece = bench.subject.blobs.read(extent.blob, start, min(_PIECE, extent.length - start))
            writer.write(piece)
            bench.lock.renew_if_due()
    except BaseException:
        writer.discard()
        raise
    return writer.close()
