"""N5: what quotas count is what is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import name_of, usage_key
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.namespace.actors import Setting
from holdfast_checker.namespace.properties.contents import Contents, contents_of
from holdfast_checker.transactions.database import DATABASE, Image, Records


def counted(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""
    known: dict[Records, str | None] = {}

    def judge(view: View) -> str | None:
        records = cast("Image", view.states[DATABASE]).records
        if records not in known:
            known[records] = "; ".join(_wrong_counters(contents_of(view))) or None
        return known[records]

    def step(before: View, after: View, actor: str) -> str | None:
        return judge(after) or _exceeded(contents_of(before), contents_of(after))

    return Property(
        name="N5",
        title="counted",
        meaning="What a quota counts is what is in its directory, with what was deleted there and is not collected "
        "yet; and no step takes it over the quota.",
        step=step,
    )


def _wrong_counters(contents: Contents) -> Iterator[str]:
    for key, inode in contents.inodes.items():
        if inode.has_quota:
            names, space = _usage(contents, inode)
            for what, is_used in ((b"n", names), (b"s", space)):
                record = contents.records.get(usage_key(inode.quota_id, what))
                counted = 0 if record is None else record.number
                if counted != is_used:
                    kind = "names" if what == b"n" else "bytes"
                    yield f"{name_of(key).decode()!r} uses {is_used} {kind}, and {counted} are counted"


def _usage(contents: Contents, directory: Inode) -> tuple[int, int]:
    inodes = list(contents.below(directory))
    for tree in contents.deleted.values():
        if directory.quota_id in tree.charged:
            inodes += contents.below(tree.root)
    return len(inodes), sum(inode.space for inode in inodes)


def _exceeded(before: Contents, after: Contents) -> str | None:
    for key, inode in after.inodes.items():
        if inode.names_quota is not None:
            now = sum(1 for _ in after.below(inode))
            old = next((one for one in before.inodes.values() if one.id == inode.id), None)
            was = 0 if old is None else sum(1 for _ in before.below(old))
            if now > inode.names_quota and now > was and (old is None or old.names_quota is not None):
                return f"{name_of(key).decode()!r} has {now} names, and its quota is {inode.names_quota}"
    return None
