"""Make durable what was found at a destination, before anything relies on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.commit.context import CommitContext
from holdfast.stores.base import transactional

T = TypeVar("T")


def durably(ctx: CommitContext, found: T, look: Callable[[], T]) -> T:
    """Return what was found at the destination once it is durable, if it is anything: what is done is not done again.

    Whoever has done it may have died before.

    Args:
        look: called to find it again, since a database that crashed meanwhile has perhaps lost it.
    """
    if not found or not ctx.store.capabilities.transactions:
        return found
    transactional(ctx.store).make_durable()
    return look()
