"""Model the operations on whole files."""

from __future__ import annotations

from holdfast.checker.namespace.model.state import Node, Path, RefusedError, State, split

__all__ = ["concat", "create", "publish_many"]


def create(state: State, path: Path, mark: str, overwrite: bool = False, writer: str = "") -> object:
    """Create a file, or replace one."""
    found = state.find(path)
    if found is not None:
        if found.is_directory:
            raise RefusedError("DirectoryInTheWayError")
        if not overwrite:
            state.refuse_writer(found)
            raise RefusedError("PathExistsError")
    state.make_parents(path)
    state.nodes[path] = Node(mark, writer)
    return None


def publish_many(state: State, overwrite: bool, *files: tuple[str, str]) -> object:
    """Create several files."""
    for path, mark in files:
        create(state, split(path), mark, overwrite)
    return None


def concat(state: State, target: Path, *sources: Path) -> object:
    """Append files to another one, and remove them."""
    node = state.file(target)
    state.refuse_writer(node)
    text = node.content or ""
    for source in sources:
        one = state.file(source)
        state.refuse_writer(one)
        if not one.content:
            raise RefusedError("InvalidRequestError")
        text += one.content
    for source in sources:
        del state.nodes[source]
    state.nodes[target] = Node(text)
    return None
