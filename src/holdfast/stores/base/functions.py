"""Functions over stores: capabilities as types, walks over pages, checks of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.errors import CorruptDataError, InvalidRequestError, PreconditionError, UnsupportedError
from holdfast.stores.base.protocols import MultipartStore, ObjectStore, RenameStore
from holdfast.stores.base.values import ObjectInfo, Part, UploadInfo

__all__ = [
    "MAX_KEYS_PER_DELETE",
    "batched_keys",
    "check_delete",
    "check_key",
    "check_move",
    "check_parts",
    "is_marker",
    "iter_objects",
    "iter_uploads",
    "iter_uploads_of",
    "multipart",
    "rename",
    "replaced",
]


MAX_KEYS_PER_DELETE = 1000
"""The limit of S3's DeleteObjects."""


def multipart(store: ObjectStore) -> MultipartStore:
    """The store as a `MultipartStore`; `UnsupportedError` if it is none."""
    if store.capabilities.multipart is None:
        raise UnsupportedError("the store has no multipart uploads")
    return store  # type: ignore[return-value]  # the capability is the promise; wrappers implement every method


def rename(store: ObjectStore) -> RenameStore:
    """The store as a `RenameStore`; `UnsupportedError` if it is none."""
    if not store.capabilities.rename:
        raise UnsupportedError("the store has no atomic rename")
    return store  # type: ignore[return-value]  # the capability is the promise; wrappers implement every method


def replaced(key: str) -> PreconditionError:
    """The error of a read whose object is not the one that was meant any more."""
    return PreconditionError("the object was replaced while it was read: list again and start over", key=key)


def is_marker(info: ObjectInfo) -> bool:
    """Whether an object only says that there is a directory, as S3 consoles, s3fs, S3A (``x/``) and s3n make them.

    Such an object is never data. One of these names that holds bytes is no marker.
    """
    return info.size_bytes == 0 and info.key.endswith(_MARKERS)


_MARKERS = ("/", "_$folder$")


def iter_objects(
    store: ObjectStore, prefix: str, start_after: str = "", page_size: int = 1000, *, markers: bool = False
) -> Iterator[ObjectInfo]:
    """Every object whose key starts with `prefix`, page by page, in the order that `ObjectStore.list_page` describes.

    Args:
        markers: show directory markers, too: for whoever deletes a directory, or shows what is in a store.

    Raises:
        CorruptDataError: the server gave the same token twice, so that the walk would not end.
    """
    token: str | None = None
    seen: set[str] = set()
    while True:
        page = store.list_page(prefix, start_after, page_size, token)
        yield from (info for info in page.objects if info.key.startswith(prefix) and (markers or not is_marker(info)))
        token = page.next_token
        if token is None:
            return
        if token in seen:
            raise CorruptDataError("a listing does not advance; report it to the store's maker", prefix=prefix)
        seen.add(token)


def iter_uploads(store: MultipartStore, prefix: str) -> Iterator[UploadInfo]:
    """Every pending upload below `prefix`, filtered here because servers return neighbours (``t1`` for ``t1/``).

    Args:
        prefix: a directory: ends in ``/`` or is empty, so that ``dataset1`` never reaches into ``dataset10``.

    Markers need not be ordered (SeaweedFS pages are unsorted), but none may come twice, or the walk would not end.

    Raises:
        InvalidRequestError: the prefix does not end in ``/``.
        CorruptDataError: the server gave the same marker twice.
    """
    if prefix and not prefix.endswith("/"):
        raise InvalidRequestError("uploads are listed below a directory: end the prefix in '/'", prefix=prefix)
    return (upload for upload in _upload_pages(store, prefix) if upload.key.startswith(prefix))


def iter_uploads_of(store: MultipartStore, key: str) -> Iterator[UploadInfo]:
    """Every pending upload of one key and no other: for servers that list uploads by whole keys only (MinIO).

    Works on every store, also on those that list by directory; one call or more for each key.

    Raises:
        InvalidRequestError: no store would take the key.
        CorruptDataError: the server gave the same marker twice.
    """
    check_key(key)
    return (upload for upload in _upload_pages(store, key) if upload.key == key)


def _upload_pages(store: MultipartStore, prefix: str) -> Iterator[UploadInfo]:
    marker: tuple[str, str] | None = None
    seen: set[tuple[str, str]] = set()
    shown: set[tuple[str, str]] = (
        set()
    )  # uploads of the marker's key: a store may begin the next page with all of that key
    while True:
        page = store.list_uploads_page(prefix, marker)
        yield from (upload for upload in page.uploads if (upload.key, upload.upload_id) not in shown)
        marker = page.next_marker
        if marker is None:
            return
        if marker in seen:
            raise CorruptDataError(
                "a listing of uploads does not advance; report it to the store's maker", prefix=prefix
            )
        seen.add(marker)
        shown = {(upload.key, upload.upload_id) for upload in page.uploads if upload.key == marker[0]}


def check_key(key: str, max_bytes: int = 1024) -> None:
    """Refuse a key that some store would refuse or change: empty, with a leading slash, not UTF-8, too long.

    Raises:
        InvalidRequestError: with the reason.
    """
    if not key or key.startswith("/"):
        raise InvalidRequestError("a key is neither empty nor starts with '/'", key=key)
    if "\0" in key:
        raise InvalidRequestError("a key holds no NUL character", key=key)
    try:
        size_bytes = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequestError("a key has to be valid unicode", key=key) from error
    if size_bytes > max_bytes:
        raise InvalidRequestError(f"a key has at most {max_bytes} bytes: shorten it", key=key, bytes=size_bytes)


def check_move(source: str, target: str) -> None:
    """Refuse what cannot be the source and the target of `RenameStore.rename_dir`, whatever the store holds.

    Raises:
        InvalidRequestError: with the reason.
    """
    for key in (source, target):
        check_key(key)
        if key.endswith("/"):
            raise InvalidRequestError("a directory is named without a slash at its end: leave it out", key=key)
    if f"{target}/".startswith(f"{source}/"):
        raise InvalidRequestError("a directory cannot move into itself: choose another", source=source, target=target)


def check_delete(keys: Sequence[str]) -> None:
    """Refuse more keys than `ObjectStore.delete_many` takes in one call.

    Raises:
        InvalidRequestError: with the reason.
    """
    if len(keys) > MAX_KEYS_PER_DELETE:
        raise InvalidRequestError(f"at most {MAX_KEYS_PER_DELETE} keys in one call: use batched_keys", keys=len(keys))


def check_parts(key: str, parts: Sequence[Part]) -> None:
    """Refuse parts that `MultipartStore.complete_upload` cannot join, whatever was uploaded.

    Raises:
        InvalidRequestError: there are none, or they are not numbered from 1 without a gap.
    """
    if not parts or [part.number for part in parts] != list(range(1, len(parts) + 1)):
        raise InvalidRequestError("parts have to be numbered from 1 without a gap", key=key)


def batched_keys(keys: Iterable[str], size: int = MAX_KEYS_PER_DELETE) -> Iterator[list[str]]:
    """Keys in lists of at most `size`, as `ObjectStore.delete_many` takes them."""
    batch: list[str] = []
    for key in keys:
        batch.append(key)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
