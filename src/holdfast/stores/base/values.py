"""What stores take and give: write modes, capabilities, records."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from holdfast.errors import InvalidRequestError

__all__ = [
    "Capabilities",
    "Create",
    "MultipartLimits",
    "ObjectInfo",
    "ObjectPage",
    "Overwrite",
    "Part",
    "PutMode",
    "Support",
    "Update",
    "UploadInfo",
    "UploadPage",
]


# --- conditional writes: a sum type -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Overwrite:
    """Write whatever is there."""


@dataclass(frozen=True, slots=True)
class Create:
    """Write only if no object has this key; else `PreconditionError`."""


@dataclass(frozen=True, slots=True)
class Update:
    """Write only over the object with this etag; else (also if it is gone) `PreconditionError`."""

    etag: str

    def __post_init__(self) -> None:
        if not self.etag:
            raise InvalidRequestError("an update names the etag that it expects: head the object first")


PutMode: TypeAlias = Overwrite | Create | Update


# --- what a store can do ----------------------------------------------------------------------------------------------
class Support(enum.Enum):
    """A capability that is known, known to be missing, or has to be probed."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipartLimits:
    """Limits of a multipart upload.

    Attributes:
        min_part_size_bytes: least size of any part but the last.
        max_parts: greatest number of parts in one upload.
    """

    min_part_size_bytes: int = 5 * 1024 * 1024
    max_parts: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store promises.

    Attributes:
        conditional_put: whether `Create` and `Update` are honoured (S3-compatible servers differ: probe).
        multipart: limits if the store is a `MultipartStore`, else None.
        rename: whether the store is a `RenameStore` (atomic file rename).
        metadata: whether metadata given to `create_upload` and `put` comes back from `head`.
        copy: whether the store is a `CopyStore` (the bytes need not pass through the client).
        rename_dir: whether the store is a `RenameStore` whose `rename_dir` is one atomic step. False where a directory
            would be renamed file by file (GCS: papers 000 and 002), or not at all.
        consistent_listing: whether a listing shows every object that was written before it began, and none that was
            deleted before. True of S3 since December 2020; committers that find work by listing need it.
        lists_uploads: whether pending uploads are listed by directory, as `iter_uploads` asks for them. MinIO lists
            them by whole keys only: `stores.probe.find_upload_listing` finds out.
        server: names the server and the bucket behind this handle, so that what one handle found out need not be found
            out by the next in the same process; empty if there is no more than this handle.
    """

    conditional_put: Support = Support.UNKNOWN
    multipart: MultipartLimits | None = None
    rename: bool = False
    metadata: bool = False
    copy: bool = False
    rename_dir: bool = False
    consistent_listing: bool = True
    lists_uploads: Support = Support.UNKNOWN
    server: str = field(default="", compare=False)


# --- records ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as `head`, `put` and listings show it; `etag` may be empty and only its equality means something."""

    key: str
    size_bytes: int
    etag: str = ""
    modified_at_s: float = 0.0
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """One page of a listing; `next_token` is None on the last one, else opaque to the caller."""

    objects: Sequence[ObjectInfo]
    next_token: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """An uploaded part: what `complete_upload` needs to name it.

    Attributes:
        checksum_algorithm, checksum: as S3 spells them, where whoever made the upload asked for checksums: then S3
            wants them again. Uploads of ours have none.
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
    """One page of pending uploads; `next_marker` is None on the last one, else opaque to the caller."""

    uploads: Sequence[UploadInfo]
    next_marker: tuple[str, str] | None
