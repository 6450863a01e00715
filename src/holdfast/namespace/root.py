"""Recognize the root of one's own namespace.

A database that loses its newest commits may lose the creation of a namespace, and somebody may then create another one
there, with its data at another place. Clients of the first one may be alive: what they publish would lack its bytes for
all others, and what they delete would be somebody else's. So the root names its namespace, and because every operation
reads and validates the root, none of theirs takes effect.
"""

from __future__ import annotations

from holdfast.errors import CorruptDataError, FencedError
from holdfast.namespace.inode import Inode


def require_own_root(root: Inode | None, identity: str) -> None:
    """Check that there is a root, of this namespace. Roots of earlier releases name none.

    Args:
        identity: `Configuration.identity`, as this process has read it.

    Raises:
        CorruptDataError: there is no root.
        FencedError: it is the root of another namespace.
    """
    if root is None:
        raise CorruptDataError(
            "the namespace has no root directory, or the database has lost it: run holdfast namespace fsck"
        )
    if root.namespace not in ("", identity):
        raise another_namespace()


def another_namespace() -> FencedError:
    """Return the error of a client whose database has another namespace by now."""
    return FencedError(
        "the database has lost the namespace that this process has opened, in a failover or a restore, and another one "
        "was created there: open the namespace again"
    )
