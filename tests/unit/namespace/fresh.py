"""Make namespaces in memory."""

from __future__ import annotations

import itertools

from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.runtime import Environment
from holdfast.stores.base import iter_objects

__all__ = ["count_blobs", "fresh_namespace"]

_numbers = itertools.count()


def fresh_namespace(*, inline_bytes: int = 1000, environment: Environment | None = None) -> Namespace:
    """Create and open a namespace; files of more than `inline_bytes` go to the object store."""
    name = f"fresh{next(_numbers)}"
    configuration = Configuration(name=name, data=f"memory://{name}", superuser="root", inline_bytes=inline_bytes)
    init_namespace(configuration, f"memory://{name}", register=False, environment=environment)
    return open_namespace(f"memory://{name}", user="root", environment=environment)


def count_blobs(namespace: Namespace) -> int:
    """Return how many blobs there are."""
    return sum(1 for _ in iter_objects(namespace.blobs.store, namespace.blobs.key("")))
