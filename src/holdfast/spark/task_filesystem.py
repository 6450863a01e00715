"""Let libraries that take a path and a filesystem of fsspec (pandas, pyarrow, PyTorch) write the files of a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fsspec.spec import AbstractFileSystem


class TaskFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """A filesystem of fsspec that writes files of a task attempt, and lists those that it has written.

    Paths are relative to the destination. A directory needs not be made.

    Guarantee: the files are those of `Task.open`: invisible before the job commits.

    Args:
        open_file: opens a `TaskFile`, given its path and a mode.
    """

    protocol = "holdfast-task"
    cachable = False

    def __init__(self, open_file: Callable[[str, str], Any]) -> None:
        super().__init__()
        self._open_file = open_file
        self._files: dict[str, Any] = {}

    def _open(self, path: str, mode: str = "rb", *_caching: Any, **_options: Any) -> Any:
        name = self._strip_protocol(path)
        self._files[name] = file = self._open_file(name, mode)
        return file

    def ls(self, path: str, detail: bool = True, **_options: Any) -> list[Any]:
        """List the complete files in a directory; the path of a file lists the file itself."""
        place = self._strip_protocol(path)
        below = f"{place}/" if place else ""
        found: dict[str, dict[str, Any]] = {}
        for name, file in self._files.items():
            if file.is_complete and (name == place or name.startswith(below)):
                child, is_deeper, _ = name[len(below) :].partition("/")
                if is_deeper:
                    found[below + child] = {"name": below + child, "size": 0, "type": "directory"}
                else:
                    found[name] = {"name": name, "size": file.tell(), "type": "file"}
        if not found and place:
            raise FileNotFoundError(path)
        return list(found.values()) if detail else list(found)
