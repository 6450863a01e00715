"""Represent pending uploads: files that are written in parts and stay invisible until somebody completes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.errors import CorruptDataError
from holdfast.namespace.inode import Extent

__all__ = ["METADATA", "Upload", "decode_metadata", "encode_metadata"]

METADATA = "user.holdfast.metadata"
"""The extended attribute that holds the metadata of an object."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A pending upload.

    Attributes:
        path: of the file to be.
        file_id: the inode id of the file to be.
        initiated_ms: milliseconds since the epoch.
        metadata: of the object to be.
        parts: the blob of each part, by its number.
    """

    path: str
    file_id: int
    initiated_ms: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[int, Extent] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the value of the upload's record."""
        fields = {
            "path": self.path,
            "file": self.file_id,
            "initiated": self.initiated_ms,
            "metadata": dict(self.metadata),
            "parts": {number: [one.blob, one.length, int(one.inline)] for number, one in self.parts.items()},
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(key: bytes, value: bytes) -> Upload:
        """Return the upload in a record.

        Raises:
            CorruptDataError: the record is not an upload. Keep it, and run fsck.
        """
        try:
            fields = json.loads(value)
            return Upload(
                str(fields["path"]),
                int(fields["file"]),
                int(fields["initiated"]),
                {str(name): str(text) for name, text in fields["metadata"].items()},
                {
                    int(number): Extent(str(blob), int(length), bool(inline))
                    for number, (blob, length, inline) in fields["parts"].items()
                },
            )
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
