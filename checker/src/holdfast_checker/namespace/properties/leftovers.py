"""Leftovers: once all is done, collections leave nothing that nobody needs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from holdfast.namespace.blobs import BLOBS as FOLDER
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.collector import Collector
from holdfast.namespace.keys import kind_range, usage_key
from holdfast.runtime.simulated import CountingIds, StillClock
from holdfast.stores.memory import MemoryImage, MemoryStore
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.namespace.actors import BLOBS, Setting
from holdfast_checker.namespace.model.state import Node, Tree
from holdfast_checker.namespace.properties.contents import Contents, tree_of
from holdfast_checker.transactions.copies import Copy
from holdfast_checker.transactions.database import DATABASE, Image, Records


def no_leftovers(setting: Setting) -> Property:
    """Run the shipped collector on what is left: once for trees and leases, and once for what is garbage then."""

    known: dict[Hashable, str | None] = {}

    def end(view: View) -> str | None:
        records = cast("Image", view.states[DATABASE]).records
        image = cast("MemoryImage", view.states[BLOBS])
        key = (records.keys, tuple((one.value, one.number) for one in records.records), image.key)  # without versions
        if key not in known:
            known[key] = collect(records, image)
        return known[key]

    def collect(records: Records, image: MemoryImage) -> str | None:
        database = Copy(records)
        clock = StillClock(setting.start_s)
        store = MemoryStore(clock=clock, ids=CountingIds())
        store.restore(image)
        blobs = BlobStore(store, "", CountingIds())
        before = _tree_or_none(database.records, image)
        for _ in range(2):
            clock.at_s += setting.configuration.safety_age_s + 24 * 3600
            Collector(database, blobs, clock, setting.configuration.safety_age_s).run()
        return _left(database, store, before, setting.leaves_blobs)

    return Property(
        name="leftovers",
        title="nothing left over",
        meaning="Once all is done, two runs of the collector, days later, leave no deleted tree, no lease of the dead, "
        "no garbage and no counter of nothing, and lose nothing that is visible.",
        end=end,
    )


def _tree_or_none(records: Records, image: MemoryImage) -> Tree | None:
    """Return the state of the model, without writers; None if bytes are missing."""
    try:
        found = tree_of(records, {key: one.data for key, one in image.objects.items()})
    except KeyError:
        return None
    return Tree(tuple((path, Node(node.content, quota=node.quota)) for path, node in found.nodes))


def _left(database: Copy, store: MemoryStore, before: Tree | None, leaves_blobs: bool) -> str | None:
    contents = Contents(database.records.as_dict())
    found = []
    for kind, what in ((b"r", "deleted trees"), (b"l", "leases"), (b"g", "notes of garbage")):
        start, end = kind_range(kind)
        count = sum(start <= key < end for key in contents.records)
        if count:
            found.append(f"{count} {what}")
    quotas = {usage_key(one.quota_id, what) for one in contents.inodes.values() for what in (b"n", b"s")}
    lost = [key for key in contents.records if key.startswith(b"u") and key not in quotas]
    found += [f"{len(lost)} counters of nothing"] if lost else []
    used = {one.blob for inode in contents.inodes.values() for one in inode.extents}
    used |= {one.blob for upload in contents.uploads for one in upload.parts.values()}
    stray = {key[1:].decode() for key in contents.records if key.startswith(b"d")} - used
    if not leaves_blobs:
        stray |= {key.removeprefix(FOLDER) for key in store.image().objects} - used
    found += [f"blobs of no file: {', '.join(sorted(stray))}"] if stray else []
    if before is not None and _tree_or_none(database.records, store.image()) != before:
        found.append("the collection has changed the tree")
    return f"after a collection, there are: {'; '.join(found)}" if found else None
