"""Say what each operation of a namespace means alone: a sequential model, of which every history must be an example.

A state is a table of paths. It knows nothing of inodes, versions, hints, deleted trees or garbage: those are how the
namespace does it. An operation answers with a value, or with the name of the class of its error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from holdfast.checker.histories.history import Operation

__all__ = ["Node", "Tree", "apply"]

_Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A directory or a file.

    Attributes:
        content: of a file; None for a directory.
        writer: who has the file's lease.
        quota: of a directory: the most names in it, itself included; 0 for no limit.
    """

    content: str | None = None
    writer: str = ""
    quota: int = 0

    @property
    def is_directory(self) -> bool:
        return self.content is None


@dataclass(frozen=True, slots=True)
class Tree:
    """The state of a namespace.

    Attributes:
        nodes: by path, sorted; the root is the empty path.
        silent: writers that have not been heard of since much time has passed.
    """

    nodes: tuple[tuple[_Path, Node], ...]
    silent: frozenset[str] = frozenset()


class _RefusedError(Exception):
    """The operation is impossible; the message is the name of the class of the error."""


class _State:
    """A tree that is being changed."""

    def __init__(self, tree: Tree) -> None:
        self.nodes = dict(tree.nodes)
        self.silent = tree.silent

    def tree(self) -> Tree:
        return Tree(tuple(sorted(self.nodes.items())), self.silent)

    def find(self, path: _Path) -> Node | None:
        """Return the node at a path.

        Raises:
            _RefusedError: a file is above it.
        """
        for depth in range(len(path)):
            above = self.nodes.get(path[:depth])
            if above is None:
                return None
            if not above.is_directory:
                raise _RefusedError("ParentNotDirectoryError")
        return self.nodes.get(path)

    def children(self, path: _Path) -> list[_Path]:
        return [one for one in sorted(self.nodes) if len(one) == len(path) + 1 and one[: len(path)] == path]

    def below(self, path: _Path) -> list[_Path]:
        """Return a path and all below it."""
        return [one for one in sorted(self.nodes) if one[: len(path)] == path]

    def make_parents(self, path: _Path) -> None:
        for depth in range(1, len(path)):
            self.nodes.setdefault(path[:depth], Node())

    def check_quotas(self, before: dict[_Path, Node]) -> None:
        """Refuse what has made a directory larger than its quota allows."""
        for path, node in self.nodes.items():
            if node.quota and len(self.below(path)) > node.quota:
                was = len([one for one in before if one[: len(path)] == path])
                if len(self.below(path)) > was or path not in before:
                    raise _RefusedError("NamesQuotaExceededError")

    def file(self, path: _Path, directory: str = "PathIsDirectoryError") -> Node:
        """Return the file at a path.

        Raises:
            _RefusedError: there is none.
        """
        found = self.find(path)
        if found is None:
            raise _RefusedError("PathNotFoundError")
        if found.is_directory:
            raise _RefusedError(directory)
        return found

    def refuse_writer(self, node: Node) -> None:
        if node.writer and node.writer not in self.silent:
            raise _RefusedError("BeingWrittenError")

    def held_by(self, writer: str) -> _Path:
        """Return the path of the file whose lease a writer has.

        Raises:
            _RefusedError: it has none.
        """
        for path, node in self.nodes.items():
            if node.writer == writer:
                return path
        raise _RefusedError("LeaseLostError")


def _split(path: object) -> _Path:
    return tuple(one for one in cast("str", path).split("/") if one)


# --- operations -------------------------------------------------------------------------------------------------------
def _mkdirs(state: _State, path: _Path) -> object:
    found = state.find(path)
    if found is not None:
        if not found.is_directory:
            raise _RefusedError("PathExistsError")
        return False
    state.make_parents(path)
    state.nodes[path] = Node()
    return True


def _create(state: _State, path: _Path, mark: str, overwrite: bool = False, writer: str = "") -> object:
    found = state.find(path)
    if found is not None:
        if found.is_directory:
            raise _RefusedError("DirectoryInTheWayError")
        if not overwrite:
            state.refuse_writer(found)
            raise _RefusedError("PathExistsError")
    state.make_parents(path)
    state.nodes[path] = Node(mark, writer)
    return None


def _delete(state: _State, path: _Path, recursive: bool) -> object:
    found = state.find(path)
    if found is None:
        return False
    if found.is_directory and not recursive and state.children(path):
        raise _RefusedError("DirectoryNotEmptyError")
    for one in state.below(path):
        del state.nodes[one]
    return True


def _rename(state: _State, source: _Path, target: _Path, overwrite: bool) -> object:
    moved, found = state.find(source), None
    error = None
    try:
        found = state.find(target)
    except _RefusedError as refused:
        error = refused
    if error is not None:
        raise error
    if moved is None:
        raise _RefusedError("PathNotFoundError")
    if source == target:
        raise _RefusedError("PathExistsError")
    if target[: len(source)] == source:
        raise _RefusedError("RenameError")
    if state.find(target[:-1]) is None:
        raise _RefusedError("PathNotFoundError")
    if found is not None:
        if found.is_directory != moved.is_directory:
            raise _RefusedError("RenameError")
        if not overwrite:
            raise _RefusedError("PathExistsError")
        if state.children(target):
            raise _RefusedError("DirectoryNotEmptyError")
    tree = {one: state.nodes.pop(one) for one in state.below(source)}
    state.nodes.pop(target, None)
    state.nodes.update({target + one[len(source) :]: node for one, node in tree.items()})
    return None


def _list(state: _State, path: _Path) -> object:
    found = state.find(path)
    if found is None:
        raise _RefusedError("PathNotFoundError")
    if not found.is_directory:
        return ("/" + "/".join(path),)
    return tuple("/" + "/".join(one) for one in state.children(path))


def _walk(state: _State, path: _Path) -> object:
    found = state.find(path)
    if found is None:
        raise _RefusedError("PathNotFoundError")
    if not found.is_directory:
        return ("/" + "/".join(path),)
    return tuple("/" + "/".join(one) for one in state.below(path) if one != path)


def _concat(state: _State, target: _Path, *sources: _Path) -> object:
    node = state.file(target)
    state.refuse_writer(node)
    text = node.content or ""
    for source in sources:
        one = state.file(source)
        state.refuse_writer(one)
        if not one.content:
            raise _RefusedError("InvalidRequestError")
        text += one.content
    for source in sources:
        del state.nodes[source]
    state.nodes[target] = Node(text)
    return None


def _append(state: _State, path: _Path, writer: str) -> object:
    node = state.file(path, "DirectoryInTheWayError")
    state.refuse_writer(node)
    state.nodes[path] = replace(node, writer=writer)
    return None


def _publish(state: _State, writer: str, mark: str, closes: bool) -> object:
    path = state.held_by(writer)
    node = state.nodes[path]
    state.nodes[path] = Node((node.content or "") + mark, "" if closes else writer)
    state.silent -= {writer}
    return None


def _renew(state: _State, writer: str) -> object:
    if writer in state.silent:
        state.held_by(writer)
        state.silent -= {writer}
    return None


def _recover(state: _State, path: _Path) -> object:
    state.nodes[path] = replace(state.file(path), writer="")
    return True


def _collect(state: _State) -> object:
    for path, node in state.nodes.items():
        if node.writer in state.silent:
            state.nodes[path] = replace(node, writer="")
    return None


def _later(state: _State) -> object:
    state.silent |= {node.writer for node in state.nodes.values() if node.writer}
    return None


def _set_quota(state: _State, path: _Path, names: int) -> object:
    found = state.find(path)
    if found is None:
        raise _RefusedError("PathNotFoundError")
    if not found.is_directory:
        raise _RefusedError("ParentNotDirectoryError")
    state.nodes[path] = replace(found, quota=names)
    return None


def _publish_many(state: _State, overwrite: bool, *files: tuple[str, str]) -> object:
    for path, mark in files:
        _create(state, _split(path), mark, overwrite)
    return None


_OPERATIONS: dict[str, Callable[..., object]] = {
    "mkdirs": lambda state, path: _mkdirs(state, _split(path)),
    "create": lambda state, path, mark: _create(state, _split(path), mark),
    "overwrite": lambda state, path, mark: _create(state, _split(path), mark, overwrite=True),
    "create_with_lease": lambda state, path, writer: _create(state, _split(path), "", writer=writer),
    "delete": lambda state, path: _delete(state, _split(path), recursive=False),
    "delete_tree": lambda state, path: _delete(state, _split(path), recursive=True),
    "rename": lambda state, source, target: _rename(state, _split(source), _split(target), overwrite=False),
    "replace": lambda state, source, target: _rename(state, _split(source), _split(target), overwrite=True),
    "list": lambda state, path: _list(state, _split(path)),
    "walk": lambda state, path: _walk(state, _split(path)),
    "read": lambda state, path: state.file(_split(path)).content,
    "concat": lambda state, *paths: _concat(state, *map(_split, paths)),
    "append": lambda state, path, writer: _append(state, _split(path), writer),
    "sync": lambda state, writer, mark: _publish(state, writer, mark, closes=False),
    "close": lambda state, writer, mark: _publish(state, writer, mark, closes=True),
    "write": _renew,
    "recover": lambda state, path: _recover(state, _split(path)),
    "set_quota": lambda state, path, names: _set_quota(state, _split(path), names),
    "publish": lambda state, *files: _publish_many(state, False, *files),
    "put_all": lambda state, *files: _publish_many(state, True, *files),
    "collect": _collect,
    "later": _later,
}


def apply(state: Hashable, operation: Operation) -> tuple[Hashable, object]:
    """Return the state after an operation, and its answer."""
    before = cast("Tree", state)
    after = _State(before)
    try:
        answer = _OPERATIONS[operation.name](after, *operation.args)
        if operation.name != "set_quota":
            after.check_quotas(dict(before.nodes))
    except _RefusedError as error:
        return state, str(error)
    return after.tree(), answer
