"""Begin pending uploads, add parts, abort them: operations, so that many threads and processes may do so at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from holdfast.namespace.changes import Changes
from holdfast.namespace.errors import LeaseLostError, PermissionDeniedError
from holdfast.namespace.inode import Extent
from holdfast.namespace.keys import data_key, garbage_key, parts_key, upload_key
from holdfast.namespace.object_store.rights import CheckTargets, may_use
from holdfast.namespace.object_store.uploads import Upload, decode_parts, encode_parts, no_such_upload, page_of
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import PathGroup
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import Chain, View

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class BeginUpload(PathGroup):
    """Note a new upload, which has no parts yet.

    Group: the inodes on the path, shared.
    """

    path: NsPath
    token: str
    upload: Upload

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `CheckTargets`."""
        changes = CheckTargets(self.paths, by_rename=False).execute(view, context)
        changes.new_values[upload_key(self.token)] = self.upload.encode()
        return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPart(PathGroup):
    """Note a part, whose bytes are durable, in its page of the upload; a part of the same number goes.

    Group: the inodes on the path, and the upload, shared; the page, exclusively. The first page, and the numbers of the
    others, are in the record of the upload.

    Attributes:
        path: of the file to be.
        token: of the upload.
        data: the bytes of a small part, by the name of its blob.
        is_late: tells whether the part is so old by now that a sweep may take it for garbage (N3): see `Publish`.
    """

    path: NsPath
    token: str
    number: int
    part: Extent
    data: Mapping[str, bytes] = field(default_factory=dict)
    is_late: Callable[[], bool] = field(default=lambda: False, compare=False)

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the record of the upload, and that of the page."""
        return {upload_key(self.token), self._page_key}

    @property
    def _page_key(self) -> bytes:
        page = page_of(self.number)
        return parts_key(self.token, page) if page else upload_key(self.token)

    def execute(self, view: View, context: Context) -> Changes[None]:
        """See `Operation`.

        Raises:
            NotFoundError: the upload was completed or aborted, or its directory renamed.
            PermissionDeniedError: the caller may not write the directory of the upload.
            LeaseLostError: the part has waited for longer than the safety age.
        """
        upload = pending_upload(view, self.token, self.path)
        if upload is None:
            raise no_such_upload(str(self.path)[1:], self.token)
        _check_use(view.chains[0], context)
        if self.is_late():
            raise LeaseLostError(
                "the bytes of the part have waited for longer than the safety age, and may be deleted: upload it again",
                path=str(self.path),
            )
        changes = Changes(None)
        changes.new_values.update({data_key(blob): content for blob, content in self.data.items()})
        page = page_of(self.number)
        parts = parts_of(view.value, upload, self.token, [page])
        if self.number in parts:
            _discard(changes, [parts[self.number]], context.now_ms)
        parts[self.number] = self.part
        if not page:
            changes.values[self._page_key] = replace(upload, parts=parts).encode()
            return changes
        changes.values[self._page_key] = encode_parts(parts)
        if page not in upload.pages:
            changes.values[upload_key(self.token)] = replace(upload, pages=upload.pages | {page}).encode()
        return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortUpload(PathGroup):
    """Remove a pending upload with its parts; returns whether it is gone. It stays if it has got another page.

    Group: the inodes on the path, shared; the upload and its pages, exclusively.

    Attributes:
        path: of the file to be.
        token: of the upload.
        pages: those that the upload had just before.
    """

    path: NsPath
    token: str
    pages: Collection[int] = ()

    @property
    def paths(self) -> tuple[NsPath]:
        """The path."""
        return (self.path,)

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the record of the upload, and those of its pages."""
        return [upload_key(self.token), *(parts_key(self.token, page) for page in self.pages)]

    def execute(self, view: View, context: Context) -> Changes[bool]:
        """See `Operation`.

        Raises:
            PermissionDeniedError: the caller may not write the directory of the upload.
        """
        changes = Changes(True)
        upload = pending_upload(view, self.token, self.path)
        if upload is None:
            return changes
        _check_use(view.chains[0], context)
        if not upload.pages.issubset(self.pages):
            return Changes(False)
        changes.deletes.update(self.also(view.chains))
        _discard(changes, parts_of(view.value, upload, self.token, [0, *self.pages]).values(), context.now_ms)
        return changes


def parts_of(
    value_of: Callable[[bytes], bytes | None], upload: Upload, token: str, pages: Iterable[int]
) -> dict[int, Extent]:
    """Return the parts of an upload that are in some of its pages.

    Args:
        value_of: returns the value of a page's record; None if there is none.
    """
    found: dict[int, Extent] = {}
    for page in pages:
        key = parts_key(token, page)
        value = value_of(key)
        found.update(upload.parts if not page else {} if value is None else decode_parts(key, value))
    return found


def pending_upload(view: View, token: str, path: NsPath) -> Upload | None:
    """Return the pending upload of a path."""
    value = view.value(upload_key(token))
    upload = None if value is None else Upload.decode(upload_key(token), value)
    return upload if upload is not None and upload.path == str(path) else None


def _check_use(chain: Chain, context: Context) -> None:
    if not may_use(chain, context.caller):
        raise PermissionDeniedError(
            "the user may not write the directory of the upload: ask its owner",
            key=str(chain.path)[1:],
            user=context.caller.user,
        )


def _discard(changes: Changes[R], parts: Iterable[Extent], now_ms: int) -> None:
    """Delete the records of small parts, and note the others as garbage."""
    for part in parts:
        if part.inline:
            changes.deletes.add(data_key(part.blob))
        else:
            changes.new_values[garbage_key(now_ms, part.blob)] = b""
