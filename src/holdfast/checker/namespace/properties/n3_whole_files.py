"""N3: every file that is visible has all its bytes."""

from __future__ import annotations

from typing import cast

from holdfast.checker.kernel.world import Property, View
from holdfast.checker.namespace.actors import BLOBS, Setting
from holdfast.checker.namespace.properties.contents import at_each_step, contents_of
from holdfast.namespace.blobs import BLOBS as FOLDER
from holdfast.namespace.keys import data_key
from holdfast.stores.memory.store import MemoryImage

__all__ = ["whole_files"]


def whole_files(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""

    def judge(view: View) -> str | None:
        contents = contents_of(view)
        objects = cast("MemoryImage", view.states[BLOBS]).objects
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
