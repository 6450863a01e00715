"""Share open namespaces among the filesystems of a process.

fsspec makes one filesystem for each thread. They share one namespace, and thus its connections, its hints and its group
commit.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from dataclasses import dataclass, field
from functools import partial

from holdfast.errors import CorruptDataError, FencedError, HoldfastError, NotFoundError
from holdfast.namespace import Namespace, open_namespace
from holdfast.runtime.process import finalize, finish_finalizers, keep_inherited
from holdfast.stores.provider import StoreOptions

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """How to open a namespace: see `open_namespace`. Its `repr` hides what may be secret.

    Attributes:
        url: ``holdfast://name``; empty for whatever namespace the database contains.
    """

    url: str
    database: str = field(repr=False)
    user: str | None
    groups: tuple[str, ...] | None
    store_options: tuple[StoreOptions, ...] = field(repr=False)

    def open(self) -> Namespace:
        """Open the namespace."""
        return open_namespace(
            self.url or self.database,
            database=self.database,
            user=self.user,
            groups=self.groups,
            store_options=self.store_options,
        )


class SharedNamespace:
    """A namespace that is closed when nobody refers to this object any more, at the latest when the process ends."""

    def __init__(self, namespace: Namespace, close: bool = True) -> None:
        self.namespace = namespace
        if close:
            weakref.finalize(self, finalize, partial(_close_in, os.getpid(), namespace))


def _close_in(pid: int, namespace: Namespace) -> None:
    if os.getpid() != pid:
        keep_inherited(namespace)
        return
    try:
        namespace.close()
    except HoldfastError as error:  # nobody can catch it here, and Python would print where it comes from
        name = namespace.configuration.name
        _log.warning("the last modification times of some directories of %s may not be saved: %s", name, error)


_open: weakref.WeakValueDictionary[Address, SharedNamespace] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def shared_namespace(address: Address) -> SharedNamespace:
    """Open a namespace, or return the one that is open already.

    Raises: see `open_namespace`.
    """
    finish_finalizers()
    with _lock:
        found = _open.get(address)
        if found is None:
            found = _open[address] = SharedNamespace(address.open())
        return found


def forget_lost(shared: SharedNamespace) -> bool:
    """Open a namespace anew for whoever asks for it next, if what is open is lost; return whether it is.

    Its database was removed or replaced, or contains no such namespace any more: what is open stays useless.

    Raises:
        HoldfastError: nobody knows, because the database cannot be reached.
    """
    try:
        shared.namespace.status("/")
        return False
    except (NotFoundError, FencedError, CorruptDataError):
        with _lock:
            for address in [address for address, one in _open.items() if one is shared]:
                del _open[address]
        return True


def _forget() -> None:
    """Begin anew after a fork: another thread of the parent may have held the lock."""
    global _open, _lock
    _open, _lock = weakref.WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_forget)
