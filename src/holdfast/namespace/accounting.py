"""Count what directories with quotas use.

Only directories with a quota have counters, so an operation outside of them pays nothing. The counters change by blind
adds, which do not conflict, with the quota as their bound, so no concurrent operations can exceed it together.

Source: Hadoop's HDFS Quotas Guide: a quota of names counts the directory itself; a quota of space counts bytes times
replication.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from holdfast.namespace.changes import Changes
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import usage_key
from holdfast.transactions.base import MAX_NUMBER, Bound

R = TypeVar("R")


def charge(changes: Changes[R], ancestors: Iterable[Inode], *, names: int = 0, space: int = 0) -> None:
    """Add to the usage of every directory with a quota, and require that it stays within the quota.

    Args:
        ancestors: the directories above what comes or goes.
        names, space: the change; what goes is negative, and is never refused.
    """
    for inode in ancestors:
        if inode.has_quota:
            names_key, space_key = usage_keys(inode)
            _charge(changes, names_key, names, inode.names_quota)
            _charge(changes, space_key, space, inode.space_quota)


def usage_keys(inode: Inode) -> tuple[bytes, bytes]:
    """Return the keys of the counters of a directory with a quota: names, and space."""
    return usage_key(inode.quota_id, b"n"), usage_key(inode.quota_id, b"s")


def _charge(changes: Changes[R], key: bytes, amount: int, quota: int | None) -> None:
    if not amount:
        return
    total = changes.adds.get(key, 0) + amount
    changes.adds[key] = total
    if not total:
        del changes.adds[key]  # what goes makes room for what comes
    if quota is not None and total > 0:
        changes.bounds.append(Bound(key, min(quota, MAX_NUMBER)))
