"""Model the operations on directories and names."""

from __future__ import annotations

from dataclasses import replace

from holdfast.checker.namespace.model.state import Node, Path, RefusedError, State

__all__ = ["delete", "list_entries", "mkdirs", "rename", "set_quota", "walk"]


def mkdirs(state: State, path: Path) -> object:
    """Make a directory and those above it; answer whether it is new."""
    found = state.find(path)
    if found is not None:
        if not found.is_directory:
            raise RefusedError("PathExistsError")
        return False
    state.make_parents(path)
    state.nodes[path] = Node()
    return True


def delete(state: State, path: Path, recursive: bool) -> object:
    """Delete a path; answer whether there was anything."""
    found = state.find(path)
    if found is None:
        return False
    if found.is_directory and not recursive and state.children(path):
        raise RefusedError("DirectoryNotEmptyError")
    for one in state.below(path):
        del state.nodes[one]
    return True


def rename(state: State, source: Path, target: Path, overwrite: bool) -> object:
    """Rename a path with everything below it."""
    moved, found = state.find(source), None
    error = None
    try:
        found = state.find(target)
    except RefusedError as refused:
        error = refused
    if error is not None:
        raise error
    if moved is None:
        raise RefusedError("PathNotFoundError")
    if source == target:
        raise RefusedError("PathExistsError")
    if target[: len(source)] == source:
        raise RefusedError("RenameError")
    if state.find(target[:-1]) is None:
        raise RefusedError("PathNotFoundError")
    if found is not None:
        if found.is_directory != moved.is_directory:
            raise RefusedError("RenameError")
        if not overwrite:
            raise RefusedError("PathExistsError")
        if state.children(target):
            raise RefusedError("DirectoryNotEmptyError")
    tree = {one: state.nodes.pop(one) for one in state.below(source)}
    state.nodes.pop(target, None)
    state.nodes.update({target + one[len(source) :]: node for one, node in tree.items()})
    return None


def list_entries(state: State, path: Path) -> object:
    """Answer with the entries of a directory, or with the file itself."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if not found.is_directory:
        return ("/" + "/".join(path),)
    return tuple("/" + "/".join(one) for one in state.children(path))


def walk(state: State, path: Path) -> object:
    """Answer with everything below a path."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if not found.is_directory:
        return ("/" + "/".join(path),)
    return tuple("/" + "/".join(one) for one in state.below(path) if one != path)


def set_quota(state: State, path: Path, names: int) -> object:
    """Limit the number of names in a directory."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if not found.is_directory:
        raise RefusedError("ParentNotDirectoryError")
    state.nodes[path] = replace(found, quota=names)
    return None
