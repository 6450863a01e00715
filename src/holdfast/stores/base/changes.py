"""Define the changes that a `TransactionalStore` makes in one step: a sum type, with the conditions for making them.

Worked composition::

    store.apply([
        Put("t/log/2", b"decision", Create()),             # refused if the object exists
        Require("t/log/1"),                                # refused if it does not, or is another one than given
        Complete("t/part-0", upload_id, parts),            # refused if something is there already
        Delete("t/old", etag),                             # spared if it is another object by now
    ])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.stores.base.values import Create, Overwrite, Part, PutMode


@dataclass(frozen=True, slots=True)
class Put:
    """Write a whole object, like `ObjectStore.put`, under the condition of `mode`."""

    key: str
    data: bytes = field(repr=False)
    mode: PutMode = Overwrite()  # noqa: RUF009  # a frozen value


@dataclass(frozen=True, slots=True)
class Complete:
    """Complete an upload, like `MultipartStore.complete_upload`, under the condition of `mode` for the object."""

    key: str
    upload_id: str
    parts: tuple[Part, ...]
    mode: PutMode = Create()  # noqa: RUF009  # a frozen value


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object, like `ObjectStore.delete`, unless it has another etag than the given one.

    Attributes:
        etag: the etag of the object that the caller has seen, as listings return it; empty for any object.
    """

    key: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Require:
    """Change nothing; refuse all changes if this object does not exist, or has another etag than the given one.

    Attributes:
        etag: as listings return it; empty for any object.
    """

    key: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class RequireEmpty:
    """Change nothing; refuse all changes if an object exists in this directory or below it.

    Attributes:
        key: the key of the directory, which ends in ``/``.
    """

    key: str


Change: TypeAlias = Put | Complete | Delete | Require | RequireEmpty


def keys_of(changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the key of each change."""
    return tuple(change.key for change in changes)


def sent_bytes(changes: Iterable[Change]) -> int:
    """Return how many bytes of objects the changes contain."""
    return sum(len(change.data) for change in changes if isinstance(change, Put))
