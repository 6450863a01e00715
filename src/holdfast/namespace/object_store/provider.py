"""Provide the stores of ``holdfast://name/path`` URLs: directories of namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.stores.provider import Location, OptionSpec, StoreOptions, StoreProvider

if TYPE_CHECKING:
    from holdfast.namespace.object_store.store import NamespaceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceOptions(StoreOptions):
    """The options of a store at a ``holdfast://`` URL: how to open its namespace.

    Attributes:
        database: URL of its database, which may contain a password; empty looks the name up in the catalog.
        user: who writes; empty is the user of the process.
        data: how to reach the object store of its data, among the options of other stores.
    """

    database: str = ""
    user: str = ""
    data: tuple[StoreOptions, ...] = ()

    def __repr__(self) -> str:
        return f"NamespaceOptions(user={self.user!r})"


def _open_store(location: Location, options: NamespaceOptions) -> NamespaceStore:
    from holdfast.namespace.object_store.store import NamespaceStore
    from holdfast.namespace.opening import open_namespace

    namespace = open_namespace(
        f"holdfast://{location.root}",
        database=options.database or None,
        user=options.user or None,
        store_options=options.data,
    )
    return NamespaceStore(namespace, keep=location.prefix)


PROVIDER = StoreProvider(
    schemes=("holdfast",),
    open=_open_store,
    options=NamespaceOptions,
    specs=(OptionSpec("namespaceDatabase", "database", str, secret=True), OptionSpec("namespaceUser", "user", str)),
    inner_options="data",
)
"""``holdfast://name/path``."""
