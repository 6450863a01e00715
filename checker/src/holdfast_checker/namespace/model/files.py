"""Model the operations on whole files."""

from __future__ import annotations

from dataclasses import replace

from holdfast.namespace.permissions import READ, WRITE
from holdfast_checker.namespace.model.state import Node, Path, RefusedError, State, split


def create(state: State, path: Path, mark: str, overwrite: bool = False, writer: str = "") -> object:
    """Create a file, or replace one."""
    found = state.find(path)
    if found is None:
        state.make_parents(path)
    else:
        state.check(path[:-1], WRITE)
        if found.is_directory:
            raise RefusedError("DirectoryInTheWayError")
        if not overwrite:
            state.refuse_writer(found)
            raise RefusedError("PathExistsError")
        state.check(path, WRITE)
        state.check_removal(path)
    state.nodes[path] = Node(mark, writer, owner=state.user)
    return None


def read(state: State, path: Path) -> object:
    """Answer with the content of a file."""
    found = state.file(path)
    state.check(path, READ)
    return found.content


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
    state.nodes[target] = replace(node, content=text, writer="")
    return None
