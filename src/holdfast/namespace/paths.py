"""Parse and check paths by HDFS's rules.

Source: Hadoop's ``DFSUtil.isValidName`` for what a component may be; the keys ``dfs.namenode.fs-limits.*`` and
``FSNamesystem.checkPathLength`` for the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import CorruptDataError
from holdfast.namespace.errors import ComponentTooLongError, InvalidPathError, PathTooLongError

MAX_COMPONENT_BYTES = 255
MAX_PATH_CHARACTERS = 8000
MAX_DEPTH = 1000


@dataclass(frozen=True, slots=True)
class NsPath:
    """An absolute path of the namespace, as its components. A path that a walk of a tree returns may have more levels
    than `MAX_DEPTH`, because renames can make such trees.

    Attributes:
        names: its components as UTF-8; empty for the root.
    """

    names: tuple[bytes, ...]

    @staticmethod
    def parse(text: str) -> NsPath:
        """Parse an absolute path by HDFS's rules. A trailing slash is allowed, and percent signs are ordinary
        characters.

        Raises:
            InvalidPathError: the path is not absolute, has an empty component, ``.``, ``..``, a colon or NUL, or is not
                valid Unicode.
            PathTooLongError: a limit is exceeded.
        """
        if not text.startswith("/"):
            raise InvalidPathError("a path begins with '/': write it from the root", path=text)
        if len(text) > MAX_PATH_CHARACTERS:
            raise PathTooLongError(
                f"a path is limited to {MAX_PATH_CHARACTERS} characters: shorten it",
                characters=len(text),
                begins=text[:60],
            )
        body = text[1:-1] if text.endswith("/") and text != "/" else text[1:]
        try:
            encoded = body.encode()
        except UnicodeEncodeError as error:
            raise InvalidPathError("a path must be valid Unicode: change it", path=text) from error
        names = tuple(encoded.split(b"/")) if encoded else ()
        if len(names) > MAX_DEPTH:
            raise PathTooLongError(f"a path has at most {MAX_DEPTH} levels: shorten it", levels=len(names))
        for name in names:
            _check_name(name, text)
        return NsPath(names)

    @property
    def parent(self) -> NsPath:
        """The path without its last component; the root is its own parent."""
        return NsPath(self.names[:-1])

    def child(self, name: bytes) -> NsPath:
        """Return the path of the entry `name` (UTF-8) of this directory. The name is not checked."""
        return NsPath((*self.names, name))

    def is_below(self, other: NsPath) -> bool:
        """Return whether this path is `other` itself, or is below it."""
        return self.names[: len(other.names)] == other.names

    def __str__(self) -> str:
        """Return the path as text, such as ``/data/raw``.

        Raises:
            CorruptDataError: a name that was read from the database is not valid. Run fsck.
        """
        return "/" + _decode_names(b"/".join(self.names))


def _decode_names(names: bytes) -> str:
    try:
        return names.decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError(
            "an entry of the namespace has a name that is no text: run holdfast namespace fsck", name=names[-60:]
        ) from error


def _check_name(name: bytes, text: str) -> None:
    if name in (b"", b".", b".."):
        word = {b"": "an empty component", b".": "'.'", b"..": "'..'"}[name]
        raise InvalidPathError(f"a path must not contain {word}: remove it", path=text)
    if b":" in name or b"\0" in name:
        word = "a colon" if b":" in name else "a NUL character"
        raise InvalidPathError(f"a path must not contain {word} (HDFS's rule): remove it", path=text)
    if len(name) > MAX_COMPONENT_BYTES:
        raise ComponentTooLongError(
            f"a component of a path is limited to {MAX_COMPONENT_BYTES} bytes: shorten it", bytes=len(name)
        )


ROOT = NsPath(())
