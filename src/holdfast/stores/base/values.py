"""Define the values that stores accept and return: write modes, capabilities, records."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.errors import InvalidRequestError


# --- conditional writes: a sum type -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Overwrite:
    """Write unconditionally."""


@dataclass(frozen=True, slots=True)
class Create:
    """Write only if no object has this key; otherwise, raise `PreconditionError`."""


@dataclass(frozen=True, slots=True)
class Update:
    """Replace the object if it has this etag; if it has another one or does not exist, raise `PreconditionError`."""

    etag: str

    def __post_init__(self) -> None:
        if not self.etag:
            raise InvalidRequestError("an update needs the etag of the object that it replaces: head the object first")


PutMode: TypeAlias = Overwrite | Create | Update


# --- what a store can do ----------------------------------------------------------------------------------------------
class Support(enum.Enum):
    """Whether a store has a capability; if this is unknown, the store must be probed."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipartLimits:
    """Limits of a multipart upload.

    Attributes:
        min_part_size_bytes: minimum size of every part except the last.
        max_parts: maximum number of parts in one upload.
    """

    min_part_size_bytes: int = 5 * 1024 * 1024
    max_parts: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities that a store promises.

    Attributes:
        conditional_put: whether `Create` and `Update` are honored. S3-compatible servers differ: probe.
        multipart: the limits if the store is a `MultipartStore`, else None.
        rename: whether the store is a `RenameStore` (atomic file rename).
        metadata: whether `head` returns the metadata given to `create_upload` and `put`.
        copy: whether the store is a `CopyStore` (the bytes need not pass through the client).
        rename_dir: whether the store is a `RenameStore` whose `rename_dir` is one atomic step. False where a directory
            would be renamed file by file (GCS: papers 000 and 002), or not at all.
        consistent_listing: whether a listing contains every object that was written before it began, and none that was
            deleted before. True of S3 since December 2020; required by committers that find their files by listing.
        lists_uploads: whether pending uploads are listed by directory, as `iter_uploads` requests them. MinIO lists
            them by whole keys only. If this is unknown, `stores.probe.find_upload_listing` tests it.
        transactions: whether the store is a `TransactionalStore`. Such a store is also a `MultipartStore` and honors
            conditional puts.
        server: identifies the server and the bucket, so that handles in the same process can share probe results; empty
            if no other handle can reach the same data.
    """

    conditional_put: Support = Support.UNKNOWN
    multipart: MultipartLimits | None = None
    rename: bool = False
    metadata: bool = False
    copy: bool = False
    rename_dir: bool = False
    consistent_listing: bool = True
    lists_uploads: Support = Support.UNKNOWN
    transactions: bool = False
    server: str = field(default="", compare=False)


# --- records ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """The description of an object that `head`, `put` and listings return.

    Etags can only be compared for equality. An etag may be empty.
    """

    key: str
    size_bytes: int
    etag: str = ""
    modified_at_s: float = 0.0
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """One page of a listing; `next_token` is opaque to the caller, and None on the last page."""

    objects: Sequence[ObjectInfo]
    next_token: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """An uploaded part, as `complete_upload` needs it.

    Attributes:
        checksum_algorithm, checksum: in S3's spelling; S3 requires both if the upload was created with checksums,
            which some other tools do. Holdfast's own uploads have none.
    """

    number: int
    etag: str
    size_bytes: int
    checksum_algorithm: str = ""
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class UploadInfo:
    """A pending upload."""

    key: str
    upload_id: str
    initiated_at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class UploadPage:
    """One page of pending uploads; `next_marker` is opaque to the caller, and None on the last page."""

    uploads: Sequence[UploadInfo]
    next_marker: tuple[str, str] | None
