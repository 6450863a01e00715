"""N3: every file that is visible has all its bytes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from holdfast.namespace.blobs import BLOBS as FOLDER
from holdfast.namespace.keys import data_key
from holdfast.stores.memory import MemoryImage
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.namespace.actors import BLOBS, Setting
from holdfast_checker.namespace.properties.contents import Contents, at_each_step, contents_of
from holdfast_checker.transactions.database import DATABASE, Image


def whole_files(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    known: dict[Hashable, str | None] = {}

    def judge(view: View) -> str | None:
        objects = frozenset(cast("MemoryImage", view.states[BLOBS]).objects)
        key = (cast("Image", view.states[DATABASE]).records, objects)
        if key not in known:
            known[key] = missing(contents_of(view), objects)
        return known[key]

    def missing(contents: Contents, objects: frozenset[str]) -> str | None:
        lost = [
            one.blob
            for inode in contents.inodes.values()
            for one in inode.extents
            if (data_key(one.blob) not in contents.records if one.inline else f"{FOLDER}{one.blob}" not in objects)
        ]
        return f"the bytes of files are missing: {', '.join(sorted(lost))}" if lost else None

    return Property(
        name="N3",
        title="whole files",
        meaning="Every file that is visible has all its bytes.",
        step=at_each_step(judge),
    )
