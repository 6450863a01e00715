"""An etag never comes again, whatever happens to a file: conditional deletions and updates rely on it."""

from __future__ import annotations

import random
import re

import pytest

from holdfast.errors import PreconditionError
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Delete, Update
from tests.unit.namespace.fresh import fresh_namespace


def _append(namespace: Namespace, content: bytes) -> None:
    with namespace.append("/f") as file:
        file.write(content)


@pytest.mark.parametrize("inline_bytes", [0, 100], ids=["blobs", "small files"])
def test_what_was_cut_off_and_came_again_is_another_version(inline_bytes: int) -> None:
    namespace = fresh_namespace(inline_bytes=inline_bytes)
    namespace.write_file("/f", b"12345")
    namespace.truncate("/f", 3)
    seen = namespace.status("/f").etag
    _append(namespace, b"other")
    namespace.truncate("/f", 3)
    assert namespace.status("/f").etag != seen
    store = NamespaceStore(namespace)
    with pytest.raises(PreconditionError):
        store.put("f", b"new", Update(seen))
    store.apply([Delete("f", seen)])
    assert namespace.open("/f").read() == b"123"


def test_an_etag_is_the_id_of_a_file_and_sixteen_digits() -> None:
    """Jobs have recorded it: the next release must find the same."""
    namespace = fresh_namespace()
    namespace.write_file("/f", b"12345")
    assert re.fullmatch("[0-9a-f]+-[0-9a-f]{16}", namespace.status("/f").etag)


def test_no_sequence_of_changes_repeats_an_etag() -> None:
    namespace = fresh_namespace(inline_bytes=2)
    chance = random.Random(7)
    namespace.write_file("/f", b"")
    etags = [namespace.status("/f").etag]
    for _ in range(300):
        size, before = namespace.status("/f").size, etags[-1]
        match chance.randrange(6):
            case 0:
                namespace.write_file("/f", b"a" * chance.randrange(4), overwrite=True)
            case 1:
                namespace.delete("/f")
                namespace.write_file("/f", b"a" * chance.randrange(4))
            case 2 | 3:
                _append(namespace, b"a" * chance.randrange(1, 4))
            case _ if size:
                namespace.truncate("/f", chance.randrange(size))
        etag = namespace.status("/f").etag
        if etag != before:
            etags.append(etag)
    assert len(etags) > 200 and len(set(etags)) == len(etags)


def test_what_changes_no_content_keeps_the_etag() -> None:
    namespace = fresh_namespace()
    namespace.write_file("/f", b"12345")
    etag = namespace.status("/f").etag
    namespace.truncate("/f", 5)
    namespace.set_permission("/f", 0o600)
    namespace.rename("/f", "/g")
    assert namespace.status("/g").etag == etag
