"""Plant one corruption of each kind into a healthy namespace, directly in its records and objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from holdfast.namespace import Namespace
from holdfast.namespace.blobs import frame_blob
from holdfast.namespace.inode import Inode, decode_inode, encode_inode
from holdfast.namespace.keys import (
    ROOT_ID,
    ROOT_KEY,
    data_key,
    deleted_key,
    garbage_key,
    inode_key,
    lease_key,
    rename_record_key,
    times_key,
    upload_key,
    usage_key,
)
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.other_records import HARD_LIMIT_MS, DeletedTree, Lease, encode_trail
from holdfast.transactions.base import Commit, Committed
from tests.namespace_world import World

__all__ = ["LARGE", "PLANTS", "Plant", "Site", "healthy_site", "share_blobs"]

LARGE = b"0123456789"
"""Too large for the database of a test."""


@dataclass
class Site:
    """A namespace with a few of everything."""

    world: World
    namespace: Namespace

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        assert isinstance(self.world.database.commit(Commit(puts={key: value})), Committed)

    def delete(self, key: bytes) -> None:
        """Delete a record."""
        self.world.database.commit(Commit(deletes=[key]))

    def key(self, path: str) -> bytes:
        """Return the key of the inode at a path."""
        key = ROOT_KEY
        for name in path.strip("/").split("/"):
            key = inode_key(self.inode(key).id, name.encode())
        return key

    def inode(self, key: bytes) -> Inode:
        """Return the inode at a key."""
        return decode_inode(key, self.world.database.get_many([key])[key].value)

    def change(self, path: str, **fields: object) -> Inode:
        """Change fields of the inode at a path."""
        key = self.key(path)
        inode = replace(self.inode(key), **fields)  # type: ignore[arg-type]  # each caller knows the fields
        self.put(key, encode_inode(inode))
        return inode


def healthy_site() -> Site:
    """Return a namespace with small and large files, quotas, a writer, a deleted tree and garbage."""
    world = World()
    namespace = world.client()
    namespace.mkdirs("/a/b/c")
    namespace.write_file("/a/b/small", b"123")
    namespace.write_file("/a/b/large", LARGE)
    namespace.write_file("/a/b/c/other", LARGE)
    namespace.write_file("/top", LARGE)
    namespace.mkdirs("/quota/deep/empty")
    namespace.write_file("/quota/file", LARGE)
    namespace.set_quota("/quota", names=100, space=10_000)
    namespace.set_quota("/quota/deep", names=50)
    namespace.mkdirs("/quota/deleted/sub")
    namespace.write_file("/quota/deleted/file", LARGE)
    namespace.delete("/quota/deleted", recursive=True)
    namespace.write_file("/garbage", LARGE)
    namespace.delete("/garbage")
    writer = namespace.create_with_lease("/open")
    writer.write(LARGE)
    writer.sync()
    namespace.mkdirs("/moved/before")
    namespace.rename("/moved/before", "/moved/after")
    store = NamespaceStore(namespace, close_namespace=False)
    upload = store.create_upload("upload")
    store.upload_part("upload", upload, 1, LARGE)
    store.upload_part("upload", upload, 2, b"123")
    namespace.flush()
    assert namespace.check().totals == {}
    return Site(world, namespace)


# --- what is planted --------------------------------------------------------------------------------------------------
def _damaged_inode(site: Site) -> None:
    site.put(site.key("/quota/deep/empty"), b"{not an inode")  # and it does not count for the quotas anymore


def _damaged_root(site: Site) -> None:
    site.put(ROOT_KEY, b"\xff")


def _damaged_lease(site: Site) -> None:
    site.put(lease_key(10**6), b"[]")


def _damaged_note(site: Site) -> None:
    site.put(garbage_key(5, "") + b"\xff\xfe", b"")


def _damaged_time(site: Site) -> None:
    site.world.database.commit(Commit(adds={b"t12": 7}))


def _no_root(site: Site) -> None:
    site.delete(ROOT_KEY)


def _bad_name(site: Site) -> None:
    key = site.key("/top")
    site.put(inode_key(ROOT_ID, b"to/p\xff"), encode_inode(site.inode(key)))
    site.delete(key)


def _duplicate_file(site: Site) -> None:
    site.change("/top", id=site.inode(site.key("/a/b/large")).id)


def _duplicate_directory(site: Site) -> None:
    site.namespace.mkdirs("/twin")
    site.change("/twin", id=site.inode(site.key("/a/b")).id)


def _file_with_children(site: Site) -> None:
    number = site.inode(site.key("/top")).id
    key = site.key("/a/b/large")
    site.put(inode_key(number, b"large"), encode_inode(site.inode(key)))
    site.delete(key)


def _deleted_tree_in_the_tree(site: Site) -> None:
    inode = site.inode(site.key("/a/b"))
    site.put(deleted_key(inode.id), DeletedTree(inode, "/a/b", 1, ()).encode())


def _orphans(site: Site) -> None:
    site.delete(site.key("/a/b"))


def _orphan_without_a_parent_id(site: Site) -> None:
    key = site.key("/top")
    site.put(inode_key(0, b"top"), encode_inode(site.inode(key)))
    site.delete(key)


def _cycle(site: Site) -> None:
    key = site.key("/a/b")
    inner = site.inode(site.key("/a/b/c"))
    site.put(inode_key(inner.id, b"b"), encode_inode(site.inode(key)))
    site.delete(key)


def _note_of_a_file(site: Site) -> None:
    (extent,) = site.inode(site.key("/top")).extents
    site.put(garbage_key(7, extent.blob), b"")


def _missing_object(site: Site) -> None:
    (extent,) = site.inode(site.key("/top")).extents
    site.world.store.delete(site.world.blobs.key(extent.blob))


def _missing_small(site: Site) -> None:
    (extent,) = site.inode(site.key("/a/b/small")).extents
    site.delete(data_key(extent.blob))


def _short_object(site: Site) -> None:
    (extent,) = site.inode(site.key("/top")).extents
    site.world.store.put(site.world.blobs.key(extent.blob), frame_blob(extent.blob, LARGE[:-1]))


def _short_small(site: Site) -> None:
    (extent,) = site.inode(site.key("/a/b/small")).extents
    site.put(data_key(extent.blob), frame_blob(extent.blob, b"1"))


def _damaged_small(site: Site) -> None:
    (extent,) = site.inode(site.key("/a/b/small")).extents
    site.put(data_key(extent.blob), frame_blob("another blob", b"123"))


def _shared_object(site: Site) -> None:
    share_blobs(site, "/top", "/a/b/large")


def _shared_small(site: Site) -> None:
    site.namespace.write_file("/a/b/small2", b"456")
    share_blobs(site, "/a/b/small2", "/a/b/small")


def share_blobs(site: Site, path: str, other: str) -> None:
    """Let a file have the blobs of another one instead of its own."""
    for extent in site.inode(site.key(path)).extents:
        site.world.store.delete(site.world.blobs.key(extent.blob))
        site.delete(data_key(extent.blob))
    site.change(path, extents=site.inode(site.key(other)).extents)


def _twice_in_a_file(site: Site) -> None:
    extents = site.inode(site.key("/top")).extents
    site.change("/top", extents=(*extents, *extents))


def _unowned_object(site: Site) -> None:
    blob = site.world.blobs.new_name(4)
    site.world.store.put(site.world.blobs.key(blob), frame_blob(blob, LARGE))
    site.world.clock.at_s += 3601
    site.namespace.collect()  # closes the file of the writer that is silent by now


def _unowned_small(site: Site) -> None:
    extent, stored = site.world.blobs.new_small_blob(4, b"abc")
    site.put(data_key(extent.blob), stored[extent.blob])


def _foreign(site: Site) -> None:
    site.world.store.put(site.world.blobs.key("holiday.jpg"), LARGE)


def _writer_without_lease(site: Site) -> None:
    site.delete(lease_key(site.inode(site.key("/open")).id))


def _lease_without_file(site: Site) -> None:
    site.put(lease_key(10**6), Lease("nobody", int(site.world.clock.at_s * 1000), inode_key(1, b"nothing")).encode())


def _lease_of_another_writer(site: Site) -> None:
    key = site.key("/open")
    site.put(lease_key(site.inode(key).id), Lease("another", int(site.world.clock.at_s * 1000), key).encode())


def _stale_lease(site: Site) -> None:
    site.world.clock.at_s += HARD_LIMIT_MS / 1000 + 1


def _expired_mark(site: Site) -> None:
    site.change("/a", moving="abc", moving_until_ms=int(site.world.clock.at_s * 1000) - 1)


def _stray_time(site: Site) -> None:
    site.world.database.commit(Commit(adds={times_key(10**6): 7}))


def _stray_place(site: Site) -> None:
    site.put(rename_record_key(10**6), encode_trail(((10**6, b"x"),)))


def _damaged_place(site: Site) -> None:
    site.put(rename_record_key(site.inode(site.key("/moved/after")).id), b"[]")


def _damaged_upload(site: Site) -> None:
    site.put(upload_key("token"), b"[]")


def _stray_usage(site: Site) -> None:
    site.world.database.commit(Commit(adds={usage_key(10**6, b"n"): 7}))


def _wrong_names(site: Site) -> None:
    number = site.inode(site.key("/quota/deep")).quota_id
    site.world.database.commit(Commit(adds={usage_key(number, b"n"): 1}))


def _wrong_space(site: Site) -> None:
    number = site.inode(site.key("/quota")).quota_id
    site.world.database.commit(Commit(adds={usage_key(number, b"s"): -3}))


@dataclass(frozen=True)
class Plant:
    """A corruption, and what a check must find.

    Attributes:
        kinds: the kinds of findings, with their numbers.
        path: the path of one of the findings.
        stays: whether a repair cannot help.
    """

    plant: Callable[[Site], None]
    kinds: Mapping[str, int]
    path: str = ""
    stays: bool = False


PLANTS = {
    "damaged-inode": Plant(_damaged_inode, {"damaged-record": 1, "wrong-usage": 2}, "/quota/deep/empty"),
    "damaged-root": Plant(_damaged_root, {"damaged-record": 1}, "/"),
    "damaged-lease": Plant(_damaged_lease, {"damaged-record": 1}),
    "damaged-note": Plant(_damaged_note, {"damaged-record": 1}),
    "damaged-time": Plant(_damaged_time, {"damaged-record": 1}),
    "no-root": Plant(_no_root, {"no-root": 1}, "/"),
    "bad-name": Plant(_bad_name, {"bad-name": 1}, "/to/p\\xff"),
    "duplicate-file": Plant(_duplicate_file, {"duplicate-id": 1}, "/top"),
    "duplicate-directory": Plant(_duplicate_directory, {"duplicate-id": 1}, "/twin"),
    "file-with-children": Plant(_file_with_children, {"file-with-children": 1}, "/top"),
    "deleted-tree": Plant(_deleted_tree_in_the_tree, {"deleted-tree": 1}, "/a/b"),
    "orphans": Plant(_orphans, {"orphan": 1}),
    "orphan-of-nothing": Plant(_orphan_without_a_parent_id, {"orphan": 1}),
    "cycle": Plant(_cycle, {"cycle": 1}),
    "note-of-a-file": Plant(_note_of_a_file, {"referenced-garbage": 1}, "/top"),
    "missing-object": Plant(_missing_object, {"missing-blob": 1}, "/top", stays=True),
    "missing-small": Plant(_missing_small, {"missing-blob": 1}, "/a/b/small", stays=True),
    "short-object": Plant(_short_object, {"short-blob": 1}, "/top", stays=True),
    "short-small": Plant(_short_small, {"short-blob": 1}, "/a/b/small", stays=True),
    "damaged-small": Plant(_damaged_small, {"damaged-blob": 1}, "/a/b/small", stays=True),
    "shared-object": Plant(_shared_object, {"shared-blob": 1}, stays=True),
    "shared-small": Plant(_shared_small, {"shared-blob": 1}, stays=True),
    "twice-in-a-file": Plant(_twice_in_a_file, {"shared-blob": 1}, "/top", stays=True),
    "unowned-object": Plant(_unowned_object, {"unowned-blob": 1}),
    "unowned-small": Plant(_unowned_small, {"unowned-blob": 1}),
    "foreign": Plant(_foreign, {"foreign-object": 1}, stays=True),
    "writer-without-lease": Plant(_writer_without_lease, {"writer-without-lease": 1}, "/open"),
    "lease-without-file": Plant(_lease_without_file, {"lease-without-file": 1}),
    "lease-of-another-writer": Plant(_lease_of_another_writer, {"lease-without-file": 1}),
    "stale-lease": Plant(_stale_lease, {"stale-lease": 1}, "/open", stays=True),
    "expired-mark": Plant(_expired_mark, {"expired-mark": 1}, "/a", stays=True),
    "stray-time": Plant(_stray_time, {"stray-time": 1}, stays=True),
    "stray-place": Plant(_stray_place, {"stray-place": 1}, stays=True),
    "damaged-place": Plant(_damaged_place, {"damaged-record": 1}),
    "damaged-upload": Plant(_damaged_upload, {"damaged-record": 1}),
    "stray-usage": Plant(_stray_usage, {"stray-usage": 1}, stays=True),
    "wrong-names": Plant(_wrong_names, {"wrong-usage": 1}, "/quota/deep"),
    "wrong-space": Plant(_wrong_space, {"wrong-usage": 1}, "/quota"),
}
