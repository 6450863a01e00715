"""N1: every inode is reachable by one path."""

from __future__ import annotations

from typing import cast

from holdfast.namespace.keys import ROOT_KEY, lease_key, name_of, parent_of
from holdfast_checker.histories.tree import Row, what_is_no_tree
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.namespace.actors import Setting
from holdfast_checker.namespace.properties.contents import Contents, at_each_step, contents_of
from holdfast_checker.transactions.database import DATABASE, Image, Records

_DELETED = -1
"""In place of a parent: the root of a deleted tree."""


def is_tree(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""
    known: dict[Records, str | None] = {}

    def judge(view: View) -> str | None:
        records = cast("Image", view.states[DATABASE]).records
        if records not in known:
            known[records] = "; ".join(_wrong_in(contents_of(view))) or None
        return known[records]

    return Property(
        name="N1",
        title="a tree",
        meaning="Every inode is reachable from the root, or from a deleted tree that waits for its collection, by one "
        "path.",
        step=at_each_step(judge),
    )


def _wrong_in(contents: Contents) -> list[str]:
    rows = [
        Row(
            inode.id,
            None if key == ROOT_KEY else parent_of(key),
            name_of(key).decode(),
            inode.is_directory,
        )
        for key, inode in contents.inodes.items()
    ]
    rows += [Row(tree.root.id, _DELETED, str(tree.root.id)) for tree in contents.deleted.values()]
    if contents.deleted:
        rows.append(Row(_DELETED, 1, "deleted trees"))
    found = what_is_no_tree(rows)
    for key, inode in contents.inodes.items():
        if inode.writer and lease_key(inode.id) not in contents.records:
            found.append(f"{name_of(key).decode()!r} has a writer and no lease")
    return found
