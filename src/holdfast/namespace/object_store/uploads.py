"""Represent pending uploads: files that are written in parts and stay invisible until somebody completes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import CorruptDataError, NotFoundError
from holdfast.namespace.inode import Extent
from holdfast.namespace.inode_ids import is_id

METADATA = "user.holdfast.metadata"
"""The extended attribute that holds the metadata of an object."""

PARTS_OF_A_PAGE = 100
"""How many parts a record holds: each part rewrites one page, however many parts there are."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A pending upload.

    Attributes:
        path: of the file to be.
        file_id: the inode id of the file to be.
        initiated_ms: milliseconds since the epoch.
        metadata: of the object to be.
        parts: the first page: the blob of each part, by its number.
        pages: the numbers of the other pages, each of which is a record of its own.
    """

    path: str
    file_id: int
    initiated_ms: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[int, Extent] = field(default_factory=dict)
    pages: frozenset[int] = frozenset()

    def encode(self) -> bytes:
        """Return the value of the upload's record."""
        fields = {
            "path": self.path,
            "file": self.file_id,
            "initiated": self.initiated_ms,
            "metadata": dict(self.metadata),
            "parts": _fields_of(self.parts),
            **({"pages": sorted(self.pages)} if self.pages else {}),
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(key: bytes, value: bytes) -> Upload:
        """Return the upload in a record.

        Raises:
            CorruptDataError: the record is not an upload. Keep it, and run fsck.
        """
        with _no_upload(key):
            fields = json.loads(value)
            if not is_id(fields["file"]):
                raise ValueError("not an id")
            return Upload(
                str(fields["path"]),
                fields["file"],
                int(fields["initiated"]),
                {str(name): str(text) for name, text in fields["metadata"].items()},
                _parts_of(fields["parts"]),
                frozenset(int(page) for page in fields.get("pages", ())),
            )
        raise AssertionError("the block returns or raises")


def no_such_upload(key: str, upload_id: str) -> NotFoundError:
    """Return the error of an upload that its key does not have (any more)."""
    return NotFoundError(
        "no such upload: it was completed or aborted, or its directory was renamed", key=key, upload_id=upload_id
    )


def page_of(number: int) -> int:
    """Return the page of a part."""
    return (number - 1) // PARTS_OF_A_PAGE


def encode_parts(parts: Mapping[int, Extent]) -> bytes:
    """Return the value of the record of a page."""
    return json.dumps(_fields_of(parts), separators=(",", ":")).encode()


def decode_parts(key: bytes, value: bytes) -> dict[int, Extent]:
    """Return the parts in the record of a page.

    Raises:
        CorruptDataError: the record has no parts. Keep it, and run fsck.
    """
    with _no_upload(key):
        return _parts_of(json.loads(value))
    raise AssertionError("the block returns or raises")


def _fields_of(parts: Mapping[int, Extent]) -> dict[int, list[str | int]]:
    return {number: [one.blob, one.length, int(one.inline)] for number, one in parts.items()}


def _parts_of(fields: Mapping[str, Any]) -> dict[int, Extent]:
    return {
        int(number): Extent(str(blob), int(length), bool(inline)) for number, (blob, length, inline) in fields.items()
    }


@contextmanager
def _no_upload(key: bytes) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CorruptDataError(
            "a record of the namespace is not a pending upload: run holdfast namespace fsck", key=key
        ) from error


def encode_metadata(metadata: Mapping[str, str] | None) -> dict[str, bytes]:
    """Return metadata as extended attributes."""
    return {METADATA: json.dumps(dict(metadata)).encode()} if metadata else {}


def decode_metadata(xattrs: Mapping[str, bytes]) -> dict[str, str]:
    """Return the metadata in extended attributes; none if somebody else wrote them."""
    try:
        found = json.loads(xattrs.get(METADATA, b"{}"))
        return {str(name): str(text) for name, text in found.items()}
    except (ValueError, AttributeError):
        return {}
