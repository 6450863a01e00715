"""Say what each operation of a namespace means alone: a sequential model, of which every history must be an example.

A state is a table of paths. It knows nothing of inodes, versions, hints, deleted trees or garbage: those are how the
namespace does it. An operation answers with a value, or with the name of the class of its error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import cast

from holdfast_checker.histories.history import Operation
from holdfast_checker.namespace.model.directories import (
    delete,
    list_entries,
    mkdirs,
    rename,
    set_mode,
    set_owner,
    set_quota,
    walk,
)
from holdfast_checker.namespace.model.files import concat, create, publish_many, read
from holdfast_checker.namespace.model.leases import append, believe, collect, later, publish, recover, renew
from holdfast_checker.namespace.model.state import RefusedError, State, Tree, split
from holdfast_checker.namespace.model.uploads import abort, complete, start_upload, upload

_OPERATIONS: dict[str, Callable[..., object]] = {
    "mkdirs": lambda state, path: mkdirs(state, split(path)),
    "create": lambda state, path, mark: create(state, split(path), mark),
    "overwrite": lambda state, path, mark: create(state, split(path), mark, overwrite=True),
    "create_with_lease": lambda state, path, writer: create(state, split(path), "", writer=writer),
    "delete": lambda state, path: delete(state, split(path), recursive=False),
    "delete_tree": lambda state, path: delete(state, split(path), recursive=True),
    "rename": lambda state, source, target: rename(state, split(source), split(target), overwrite=False),
    "replace": lambda state, source, target: rename(state, split(source), split(target), overwrite=True),
    "list": lambda state, path: list_entries(state, split(path)),
    "walk": lambda state, path: walk(state, split(path)),
    "read": lambda state, path: read(state, split(path)),
    "concat": lambda state, *paths: concat(state, *map(split, paths)),
    "append": lambda state, path, writer: append(state, split(path), writer),
    "sync": lambda state, writer, mark: publish(state, writer, mark, closes=False),
    "close": lambda state, writer, mark: publish(state, writer, mark, closes=True),
    "sync_surely": lambda state, writer, mark: publish(state, writer, mark, closes=False),
    "close_surely": lambda state, writer, mark: publish(state, writer, mark, closes=True),
    "write": renew,
    "believe": believe,
    "recover": lambda state, path: recover(state, split(path)),
    "set_mode": lambda state, path, mode: set_mode(state, split(path), mode),
    "set_owner": lambda state, path, owner: set_owner(state, split(path), owner),
    "set_quota": lambda state, path, names: set_quota(state, split(path), names),
    "publish": lambda state, *files: publish_many(state, False, *files),
    "put_all": lambda state, *files: publish_many(state, True, *files),
    "start_upload": lambda state, path, name: start_upload(state, split(path), name),
    "upload": upload,
    "complete": complete,
    "abort": abort,
    "collect": collect,
    "later": later,
}


def apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Return the state after an operation, and its answer."""
    before = cast("Tree", state)
    after = State(before, operation.who)
    try:
        answer = _OPERATIONS[operation.name](after, *operation.args)
        if operation.name != "set_quota":
            after.check_quotas(dict(before.nodes))
    except RefusedError as error:
        return state, str(error)
    return after.tree(), answer
