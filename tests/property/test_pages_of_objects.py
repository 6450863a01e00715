"""Every page of a listing by prefix is the same slice of the keys, sorted by their components, whatever their names."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.stores.base import Put
from tests.namespace_world import World

# Characters before and behind the slash, and of several bytes; names that begin like others.
names = st.text("!-./0aé", min_size=1, max_size=3).filter(lambda name: name not in (".", "..") and "/" not in name)
keys = st.lists(names, min_size=1, max_size=4).map("/".join)
texts = st.text("!-./0aé", max_size=7)


def _free(wanted: Sequence[str]) -> list[str]:
    """Return the keys among which none is a directory of another one."""
    return [key for key in dict.fromkeys(wanted) if not any(other.startswith(f"{key}/") for other in wanted)]


def _components(key: str) -> list[bytes]:
    """Return by what keys are sorted: all of ``a/`` comes before ``a-b``."""
    return key.encode().split(b"/")


@given(wanted=st.lists(keys, min_size=1, max_size=14), data=st.data(), size=st.integers(1, 4))
@example(wanted=["a/b/1", "a-c", "a!/b", "a/b!x"], data=None, size=1)
@example(wanted=["a/0", "a-", "a-/a", "a!"], data=None, size=1)
def test_pages(wanted: Sequence[str], data: st.DataObject | None, size: int) -> None:
    store = NamespaceStore(World().client())
    there = sorted(_free(wanted), key=_components)
    store.apply([Put(key, b"") for key in there])
    # Beginnings of keys are more telling than any text, and so is what stands just beside a key.
    beginnings = sorted({key[:count] for key in there for count in range(len(key) + 1)})
    beside = [text + one for text in beginnings for one in ("", "!", "-", "/", "0")]
    if data is None:
        asked = [(prefix, after) for prefix in beginnings for after in beside]
    else:
        text = st.one_of(st.sampled_from(beginnings), texts)
        after = st.one_of(st.sampled_from(beside), texts)
        asked = data.draw(st.lists(st.tuples(text, after), min_size=1, max_size=12))
    for prefix, start_after in asked:
        expected = [key for key in there if key.startswith(prefix) and _components(key) > _components(start_after)]
        assert _pages(store, prefix, start_after, size) == expected, (prefix, start_after)


def _pages(store: NamespaceStore, prefix: str, start_after: str, size: int) -> list[str]:
    found: list[str] = []
    token: str | None = None
    while True:
        page = store.list_page(prefix, start_after, size, token)
        assert len(page.objects) <= size
        found += [one.key for one in page.objects]
        token = page.next_token
        if token is None:
            return found
        assert len(page.objects) == size
