"""Parse the options of a filesystem, and share open namespaces among the filesystems of a process.

fsspec makes one filesystem for each thread. They share one namespace, and thus its connections, its hints and its group
commit.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.errors import CorruptDataError, FencedError, HoldfastError, InvalidRequestError, NotFoundError
from holdfast.namespace import Namespace, open_namespace
from holdfast.namespace.catalog import SCHEME, find_database_url
from holdfast.runtime.process import keep_inherited_connections_alive, run_deferred_finalizers, run_or_defer_finalizer
from holdfast.stores.provider import StoreOptions
from holdfast.stores.registry import BUILT_IN, installed_providers, parse_store_options
from holdfast.transactions.registry import has_password, public_url
from holdfast.wording import suggest_nearest

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NamespaceAddress:
    """What `open_namespace` needs to open a namespace: URLs, user and options. Its `repr` hides what may be secret.

    Attributes:
        url: ``holdfast://name``; empty for whatever namespace the database contains.
    """

    url: str
    database: str = field(repr=False)
    user: str | None
    groups: tuple[str, ...] | None
    store_options: tuple[StoreOptions, ...] = field(repr=False)

    def open(self) -> Namespace:
        """Open the namespace at this address."""
        return open_namespace(
            self.url or self.database,
            database=self.database,
            user=self.user,
            groups=self.groups,
            store_options=self.store_options,
        )


class SharedNamespace:
    """Holds an open namespace, and closes it when the last reference to this object is dropped, or when the process
    ends.
    """

    def __init__(self, namespace: Namespace, close: bool = True) -> None:
        self.namespace = namespace
        if close:
            weakref.finalize(self, run_or_defer_finalizer, partial(_close_if_same_process, os.getpid(), namespace))


def _close_if_same_process(pid: int, namespace: Namespace) -> None:
    if os.getpid() != pid:
        keep_inherited_connections_alive(namespace)
        return
    try:
        namespace.close()
    except HoldfastError as error:  # it cannot be caught here, and Python would print where it comes from
        name = namespace.configuration.name
        _log.warning("the last modification times of some directories of %s may not be saved: %s", name, error)


_open: weakref.WeakValueDictionary[NamespaceAddress, SharedNamespace] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def get_shared_namespace(address: NamespaceAddress) -> SharedNamespace:
    """Return the open namespace of this process for an address; open it if there is none.

    Raises: see `open_namespace`.
    """
    run_deferred_finalizers()
    with _lock:
        found = _open.get(address)
        if found is None:
            found = _open[address] = SharedNamespace(address.open())
        return found


def forget_lost_namespace(shared: SharedNamespace) -> bool:
    """Forget an open namespace, and return True, if its database was removed or replaced, or no longer contains it.

    The next `get_shared_namespace` then opens the namespace again; the old object remains unusable.

    Raises:
        HoldfastError: the answer is unknown, because the database cannot be reached.
    """
    try:
        shared.namespace.status("/")
        return False
    except (NotFoundError, FencedError, CorruptDataError):
        with _lock:
            for address in [address for address, one in _open.items() if one is shared]:
                del _open[address]
        return True


def _reset_namespaces_after_fork() -> None:
    """Begin anew after a fork: another thread of the parent may have held the lock."""
    global _open, _lock
    _open, _lock = weakref.WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_reset_namespaces_after_fork)


_OF_FSSPEC = ("asynchronous", "loop", "batch_size", "use_listings_cache", "listings_expiry_time", "max_paths")
"""Keywords that fsspec's own base class takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystemOptions:
    """The parsed options of a `NamespaceFileSystem`.

    Attributes:
        of_fsspec: those of fsspec's own base class.
        secrets: names of options whose values must not be shown.
        given: the options of stores as they were given.
    """

    database: str | None = field(repr=False)
    user: str | None
    groups: tuple[str, ...] | None
    store_options: tuple[StoreOptions, ...] = field(repr=False)
    of_fsspec: Mapping[str, Any]
    secrets: frozenset[str]
    given: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def parse(
        database: str | None, user: str | None, groups: str | Sequence[str] | None, options: Mapping[str, Any]
    ) -> FileSystemOptions:
        """Parse and check the keyword arguments of a `NamespaceFileSystem`.

        Raises:
            InvalidRequestError: an option is unknown or invalid.
        """
        if isinstance(groups, str):
            groups = [one.strip() for one in groups.split(",") if one.strip()]
        if user == "":  # a setting that is missing must not mean the user of this process, who may be the superuser
            raise InvalidRequestError("the user is empty: give a name, or leave the option out")
        if database is not None and "://" not in database:
            raise InvalidRequestError("the database needs a URL such as sqlite:///directory/file.db: change it")
        of_stores = {name: value for name, value in options.items() if name not in _OF_FSSPEC}
        store_options, secrets = _parse_store_options(of_stores)
        return FileSystemOptions(
            database=database,
            user=user,
            groups=None if groups is None else tuple(groups),
            store_options=store_options,
            of_fsspec={name: value for name, value in options.items() if name in _OF_FSSPEC},
            secrets=secrets,
            given=of_stores,
        )

    def address(self, name: str) -> NamespaceAddress:
        """Return the address of a namespace, by its name, with these options.

        Raises:
            NotFoundError: there is no option `database`, and the catalog and the environment lack the name.
        """
        database = find_database_url(name) if self.database is None else self.database
        return NamespaceAddress(f"{SCHEME}://{name}", database, self.user, self.groups, self.store_options)

    def only_address(self, database: str) -> NamespaceAddress:
        """Return the address of the one namespace that a database contains, whatever its name."""
        return NamespaceAddress("", database, self.user, self.groups, self.store_options)

    def shown(self) -> dict[str, Any]:
        """Return the options that contain no secrets, for `repr`."""
        shown = {
            "database": None if self.database is None else public_url(self.database),
            "user": self.user,
            "groups": self.groups,
        }
        shown |= {name: value for name, value in self.given.items() if name not in self.secrets}
        return {name: value for name, value in shown.items() if value is not None}

    def public(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return those keyword arguments of a filesystem that contain no secret.

        A database URL with a password is secret; without it, a catalog or the environment has to supply the URL.
        """
        hidden = set(self.secrets)
        if self.database is not None and has_password(self.database):
            hidden.add("database")
        return {name: value for name, value in given.items() if name not in hidden}


def _parse_store_options(given: Mapping[str, Any]) -> tuple[tuple[StoreOptions, ...], frozenset[str]]:
    """Parse the keywords into options for each type of store; also return the keywords whose values are secret."""
    providers = BUILT_IN
    if not given.keys() <= {spec.keyword for provider in providers for spec in provider.specs}:
        providers = installed_providers()
    specs = {spec.keyword: spec for provider in providers for spec in provider.specs}
    for name in given:
        if name not in specs:
            raise InvalidRequestError(
                f"unknown option: {suggest_nearest(name, (*specs, 'database', 'user', 'groups'))}", option=name
            )
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if value is not None
    }
    return parse_store_options(texts, providers), frozenset(name for name, spec in specs.items() if spec.secret)
