"""Parse the paths of the magic filesystem: each names a store and a key.

A canonical path has no ``://``, because some users of fsspec split and join paths at every slash::

    s3://bucket/a/b, s3a://…, s3n://…    bucket/a/b
    memory://name/a/b                    memory:name/a/b
    file:///data/a                       file:/data/a
    other://name/a/b                     other:name/a/b, for the store of another package

Each of these paths may start with ``holdfast-magic://``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.commit.hadoop.pending import is_magic
from holdfast.errors import InvalidRequestError
from holdfast.stores.registry import find_provider

PROTOCOL = "holdfast-magic"

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_FILE = "file:/"
_MEMORY = "memory:"


@dataclass(frozen=True, slots=True)
class Location:
    """The store and the key that a path names.

    Attributes:
        root: the canonical path of the store.
        key: the key in the store; empty for the whole store.
    """

    root: str
    key: str

    @property
    def url(self) -> str:
        """The url of the store."""
        if self.root == _FILE:
            return "file:///"
        scheme, colon, rest = self.root.partition(":")
        return f"{scheme}://{rest}" if colon else f"s3://{self.root}"

    def path(self, key: str) -> str:
        """Return the canonical path of another key in the same store."""
        if not key:
            return self.root
        return f"{self.root}{key}" if self.root == _FILE else f"{self.root}/{key}"


def canonical(path: str) -> str:
    """Return the canonical form of a path or url; percent signs and spaces are taken literally.

    Raises:
        InvalidRequestError: no store has the url's scheme, or the path contains credentials, which the message does not
            repeat.
    """
    path = path.removeprefix(f"{PROTOCOL}://")
    found = _URL.fullmatch(path)
    if found is not None:
        scheme, rest = found[1].lower(), found[2]
        if scheme in ("s3", "s3a", "s3n"):
            path = rest
        elif scheme == "memory":
            path = f"{_MEMORY}{rest}"
        elif scheme == "file":
            path = f"{_FILE}{rest.lstrip('/')}"
        else:
            path = f"{find_provider(scheme).schemes[0]}:{rest}"
    if path.startswith(_FILE):
        return _FILE + path.removeprefix(_FILE).strip("/")
    if "@" in path.partition("/")[0]:
        raise InvalidRequestError(
            "credentials do not belong in a path, where logs would show them: give them as options"
        )
    return path.strip("/")


def locate(path: str) -> Location:
    """Return the store and the key of a canonical path.

    Raises:
        InvalidRequestError: the path names no store.
    """
    if path.startswith(_FILE):
        return Location(_FILE, path.removeprefix(_FILE))
    scheme, colon, rest = path.partition(":")
    if colon and "/" not in scheme and scheme not in ("memory", "file"):
        found = find_provider(scheme).locate(rest)
        return Location(f"{scheme}:{found.root}", found.prefix)
    root, _, key = path.partition("/")
    if root in ("", _MEMORY, "file:"):
        raise InvalidRequestError("the path names no bucket: write bucket/key, or a url", path=path)
    return Location(root, key)


def split_magic(key: str) -> tuple[str, str] | None:
    """Split a key in a magic directory into destination prefix and relative path; return None for any other key."""
    if not is_magic(key):
        return None
    segments = key.split("/")
    magic = next(index for index, segment in enumerate(segments) if is_magic(segment))
    return "".join(f"{segment}/" for segment in segments[:magic]), "/".join(segments[magic:])
