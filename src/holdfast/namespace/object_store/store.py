"""Offer a namespace as an object store that makes many changes in one transaction.

A key is a path without its first slash. So that the store shows objects only, it removes the directories that become
empty when it deletes their last file, up to the directory that it was opened for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from holdfast.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
    UnsupportedError,
)
from holdfast.namespace.errors import DirectoryNotEmptyError, ParentNotDirectoryError, PathNotFoundError
from holdfast.namespace.inode import Extent, Inode
from holdfast.namespace.keys import data_key, garbage_key, kind_range, upload_key
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store.batch import Batch, Create, Remove, etag_of
from holdfast.namespace.object_store.pages import list_files
from holdfast.namespace.object_store.uploads import Upload, decode_metadata
from holdfast.namespace.paths import NsPath
from holdfast.stores.base import (
    Capabilities,
    Change,
    Complete,
    Delete,
    MultipartLimits,
    ObjectInfo,
    ObjectPage,
    Overwrite,
    Part,
    Put,
    PutMode,
    Require,
    RequireEmpty,
    Support,
    Update,
    UploadInfo,
    UploadPage,
    check_changes,
    check_delete,
    check_key,
    check_parts,
    replaced,
)
from holdfast.stores.base import Create as CreateOnly
from holdfast.transactions.base import ABSENT, Commit, Committed

__all__ = ["NamespaceStore"]

R = TypeVar("R")
_LIMITS = MultipartLimits(min_part_size_bytes=1, max_parts=10_000)
_PART_ATTEMPTS = 50
