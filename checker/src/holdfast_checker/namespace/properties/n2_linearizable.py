"""N2: every operation takes effect at one instant."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import cast

from holdfast.namespace.keys import ROOT_KEY
from holdfast.stores.memory import MemoryImage
from holdfast_checker.histories.history import Operation, Outcome, operations_in
from holdfast_checker.histories.linearizable import Model
from holdfast_checker.histories.undone import crashes_in, judge_with_crashes, of_clients
from holdfast_checker.kernel.canonical import canonical
from holdfast_checker.kernel.world import Property, View
from holdfast_checker.namespace.actors import BLOBS, Setting
from holdfast_checker.namespace.calls import PUBLISH
from holdfast_checker.namespace.model.apply import apply
from holdfast_checker.namespace.model.state import split
from holdfast_checker.namespace.properties.contents import Contents, bytes_of, contents_of, tree_of


def linearizable(setting: Setting) -> Property:
    """Return the property of the worlds of a setting."""
    uploads = tuple((name, split(pending.key)) for name, pending in sorted(setting.uploads.items()))
    initial = replace(tree_of(setting.start, setting.blobs), uploads=uploads, users=setting.users)
    model = Model(initial=initial, apply=apply, is_small=False)
    known: dict[Hashable, str | None] = {}

    def end(view: View) -> str | None:
        operations, crashes = of_clients(operations_in(view)), crashes_in(operations_in(view))
        last = max((one.ended or one.invoked for one in operations), default=0)
        blobs = {key: one.data for key, one in cast("MemoryImage", view.states[BLOBS]).objects.items()}
        final = _everything_at_the_end(last, contents_of(view), blobs)
        key = canonical((operations, crashes, [one.value for one in final]))
        if key not in known:
            known[key] = judge_with_crashes([*operations, *final], crashes, model, _undone) or None
        return known[key]

    return Property(
        name="N2",
        title="linearizable",
        meaning="Every operation takes effect at one instant between its call and its return: in that order, each has "
        "the answer that it would have alone, and the tree in the end is what they made. If the database crashes, the "
        "newest operations may be undone; a writer then adds nothing more to a file that lacks what it has published.",
        end=end,
    )


def _undone(operation: Operation) -> Operation | None:
    """Return what is left of an operation that a crash has undone: a writer that believes it was published."""
    if operation.name not in (*PUBLISH, "upload"):
        return None
    return replace(operation, name="believe", args=operation.args[:1], value=None)


def _everything_at_the_end(last: int, contents: Contents, blobs: Mapping[str, bytes]) -> list[Operation]:
    """Return reads of the whole tree after the history."""

    def after(name: str, path: str, value: object) -> Operation:
        return Operation(
            who=f"afterwards {name} {path}",
            name=name,
            args=(path,),
            invoked=last + 1,
            ended=last + 2,
            outcome=Outcome.OK,
            value=value,
        )

    root = contents.inodes.get(ROOT_KEY)
    found = sorted(contents.paths(root), key=lambda one: one[0]) if root is not None else []
    reads = [after("walk", "/", tuple("/" + "/".join(path) for path, _inode in found if path))]
    for path, inode in found:
        if not inode.is_directory:
            try:
                content: object = bytes_of(contents, blobs, inode.extents).decode()
            except KeyError:
                content = "its bytes are lost"
            reads.append(after("read", "/" + "/".join(path), content))
    return reads
