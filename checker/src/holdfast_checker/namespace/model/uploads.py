"""Model uploads: files that nobody sees until somebody completes them."""

from __future__ import annotations

from holdfast_checker.namespace.model.files import create
from holdfast_checker.namespace.model.state import Path, RefusedError, State


def start_upload(state: State, path: Path, name: str) -> object:
    """Begin an upload without content."""
    found = state.find(path)
    if found is not None and found.is_directory:
        raise RefusedError("PathIsDirectoryError")
    state.uploads[name] = path
    return None


def upload(state: State, name: str, mark: str) -> object:
    """Add a part to an upload. It counts only if it is named when the upload is completed."""
    _pending(state, name)
    return None


def complete(state: State, name: str, content: str) -> object:
    """Let an upload become a file with the content of the parts that the caller names."""
    path = _pending(state, name)
    if name in state.mistaken:
        raise RefusedError("InvalidRequestError")
    found = state.find(path)
    if found is not None and found.is_directory:
        raise RefusedError("PathIsDirectoryError")
    create(state, path, content, overwrite=True)
    del state.uploads[name]
    return None


def abort(state: State, name: str) -> object:
    """Forget an upload."""
    state.uploads.pop(name, None)
    return None


def _pending(state: State, name: str) -> Path:
    if name not in state.uploads:
        raise RefusedError("NotFoundError")
    return state.uploads[name]
