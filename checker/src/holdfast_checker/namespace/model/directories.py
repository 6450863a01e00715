"""Model the operations on directories and names."""

from __future__ import annotations

from dataclasses import replace

from holdfast.namespace.permissions import EXECUTE, READ, WRITE
from holdfast_checker.namespace.model.state import Node, Path, RefusedError, State


def mkdirs(state: State, path: Path) -> object:
    """Make a directory and those above it; answer whether it is new."""
    found = state.find(path)
    if found is not None:
        if not found.is_directory:
            raise RefusedError("PathExistsError")
        return False
    state.make_parents(path)
    state.nodes[path] = Node(owner=state.user)
    return True


def delete(state: State, path: Path, recursive: bool) -> object:
    """Delete a path; answer whether there was anything."""
    found = state.find(path)
    state.check_removal(path)
    if found is None:
        return False
    if found.is_directory and not recursive and state.children(path):
        raise RefusedError("DirectoryNotEmptyError")
    for one in state.below(path):
        del state.nodes[one]
    return True


def rename(state: State, source: Path, target: Path, overwrite: bool) -> object:
    """Rename a path with everything below it."""
    moved, found = state.find(source), state.find(target)
    state.check_removal(source)
    state.check(state.deepest(target), WRITE)
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
        state.check_removal(target)
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
    state.check(path, READ | EXECUTE)
    return tuple("/" + "/".join(one) for one in state.children(path))


def walk(state: State, path: Path) -> object:
    """Answer with everything below a path."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if not found.is_directory:
        return ("/" + "/".join(path),)
    return tuple("/" + "/".join(one) for one in state.below(path) if one != path)


def set_mode(state: State, path: Path, mode: int) -> object:
    """Change the permission bits of a path."""
    found = _owned(state, path)
    state.nodes[path] = replace(found, mode=mode)
    return None


def set_owner(state: State, path: Path, owner: str) -> object:
    """Give a path to a user."""
    found = _owned(state, path)
    if state.user:
        raise RefusedError("PermissionDeniedError")
    state.nodes[path] = replace(found, owner=owner)
    return None


def _owned(state: State, path: Path) -> Node:
    """Return what has a path, if it belongs to the user."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if state.user and found.owner != state.user:
        raise RefusedError("PermissionDeniedError")
    return found


def set_quota(state: State, path: Path, names: int) -> object:
    """Limit the number of names in a directory."""
    found = state.find(path)
    if found is None:
        raise RefusedError("PathNotFoundError")
    if not found.is_directory:
        raise RefusedError("ParentNotDirectoryError")
    state.nodes[path] = replace(found, quota=names)
    return None
