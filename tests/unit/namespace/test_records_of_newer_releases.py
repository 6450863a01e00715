"""Fields of inodes that this release does not know stay, whatever changes the inode; newer formats are refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from holdfast.errors import HoldfastError, UnsupportedError
from holdfast.namespace import Namespace
from holdfast.namespace.inode import INODE_FORMAT
from holdfast.namespace.keys import ROOT_KEY
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.transactions.base import Commit
from tests.namespace_world import World
from tests.unit.namespace.fsck.plants import Site

_FIELD = {"field_of_a_later_release": ["cold", {"since": 1}]}
_LARGE = b"0123456789"


def _site() -> Site:
    """Return a namespace in which every inode has a field of a newer release."""
    world = World(safety_age_s=0)
    namespace = world.client()
    namespace.mkdirs("/d/e")
    namespace.mkdirs("/other")
    for path in ("/d/f", "/d/g", "/d/e/h"):
        namespace.write_file(path, _LARGE)
    namespace.set_quota("/other", names=100)
    for key, record in world.records(b"i").items():
        world.database.commit(Commit(puts={key: json.dumps(json.loads(record.value) | _FIELD).encode()}))
    return Site(world, world.client())


def _write_under_lease(namespace: Namespace) -> None:
    with namespace.append("/d/f") as file:
        file.write(b"more")
        file.sync()
        file.write(b"and more")


def _recover(namespace: Namespace) -> None:
    namespace.append("/d/f")
    namespace.recover_lease("/d/f")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda namespace: namespace.set_permission("/d", 0o700), "/d"),
        (lambda namespace: namespace.set_owner("/d/f", "ann", "staff"), "/d/f"),
        (lambda namespace: namespace.set_times("/d", mtime_ms=5), "/d"),
        (lambda namespace: namespace.set_replication("/d/f", 3), "/d/f"),
        (lambda namespace: namespace.set_xattr("/d/f", "user.a", b"1"), "/d/f"),
        (lambda namespace: namespace.set_quota("/d", names=100), "/d"),
        (lambda namespace: namespace.rename("/d", "/z"), "/z"),
        (lambda namespace: namespace.rename("/d", "/other/z"), "/other/z"),
        (lambda namespace: namespace.rename("/d/f", "/d/g", overwrite=True), "/d/g"),
        (lambda namespace: namespace.truncate("/d/f", 3), "/d/f"),
        (lambda namespace: namespace.concat("/d/f", ["/d/g"]), "/d/f"),
        (_write_under_lease, "/d/f"),
        (_recover, "/d/f"),
        (lambda namespace: namespace.sweep(), "/"),
    ],
)
def test_unknown_fields_are_kept(change: Callable[[Namespace], object], path: str) -> None:
    site = _site()
    change(site.namespace)
    key = ROOT_KEY if path == "/" else site.key(path)
    value = json.loads(site.world.records(b"i")[key].value)
    assert value.items() >= _FIELD.items()
    assert site.namespace.check().is_healthy


def test_they_are_kept_in_deleted_trees() -> None:
    site = _site()
    site.namespace.delete("/d", recursive=True)
    (record,) = site.world.records(b"r").values()
    assert json.loads(record.value)["inode"].items() >= _FIELD.items()


def test_a_directory_that_an_object_store_made_stays_if_a_newer_release_has_changed_it() -> None:
    world = World()
    site = Site(world, world.client())
    store = NamespaceStore(site.namespace, close_namespace=False)
    store.put("a/b", b"1")
    value = json.loads(world.records(b"i")[site.key("/a")].value)
    site.put(site.key("/a"), json.dumps(value | _FIELD).encode())
    store.delete("a/b")
    assert site.namespace.exists("/a")


@pytest.mark.parametrize(
    "call",
    [
        lambda namespace: namespace.status("/d/f"),
        lambda namespace: namespace.set_permission("/d/f", 0o600),
        lambda namespace: namespace.list_page("/d"),
        lambda namespace: namespace.check(),
        lambda namespace: namespace.repair(),
        lambda namespace: namespace.sweep(),
    ],
)
def test_a_newer_format_is_refused_in_one_sentence(call: Callable[[Namespace], object]) -> None:
    site = _site()
    key = site.key("/d/f")
    value = json.dumps({"format": INODE_FORMAT + 1, "anything": "else"}).encode()
    site.put(key, value)
    with pytest.raises(UnsupportedError, match="upgrade Holdfast") as caught:
        call(site.namespace)
    assert isinstance(caught.value, HoldfastError)
    assert site.world.records(b"i")[key].value == value, "nothing has changed it"
