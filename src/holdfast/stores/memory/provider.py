"""Provide the stores of ``memory://`` URLs, which live as long as this process. For tests."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from holdfast.stores.provider import Location, StoreOptions, StoreProvider

if TYPE_CHECKING:
    from holdfast.stores.memory.store import MemoryStore

_stores: dict[str, MemoryStore] = {}
_lock = threading.Lock()


def memory_store(name: str) -> MemoryStore:
    """Return the store of ``memory://name``: the same one for the same name as long as this process lives."""
    from holdfast.stores.memory.store import MemoryStore

    with _lock:
        return _stores.setdefault(name, MemoryStore())


def _open(location: Location, _options: StoreOptions) -> MemoryStore:
    return memory_store(location.root)


MEMORY = StoreProvider(schemes=("memory",), open=_open)
"""``memory://name/key``."""
