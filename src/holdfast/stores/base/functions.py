"""Check arguments of store calls, iterate over pages of listings, and cast a store to a protocol it implements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.errors import CorruptDataError, InvalidRequestError, PreconditionError, UnsupportedError
from holdfast.stores.base.changes import Change, Complete, Require, RequireEmpty
from holdfast.stores.base.protocols import MultipartStore, ObjectStore, RenameStore, TransactionalStore
from holdfast.stores.base.values import ObjectInfo, Part, UploadInfo

MAX_KEY_BYTES = 1024
"""The longest key of S3, in UTF-8: what every store must accept."""

MAX_KEYS_PER_DELETE = 1000
"""The limit of S3's DeleteObjects."""

_MOST_NUMBER = 2**63 - 1
_MOST_ON_PAGE = 2**31 - 2
"""So many, and one more, every database and every request can ask for."""


def multipart(store: ObjectStore) -> MultipartStore:
    """Return the store as a `MultipartStore`.

    Raises:
        UnsupportedError: the store has no multipart uploads.
    """
    if store.capabilities.multipart is None:
        raise UnsupportedError("the store has no multipart uploads")
    return store  # type: ignore[return-value]  # the capability promises it; wrappers implement every method


def rename(store: ObjectStore) -> RenameStore:
    """Return the store as a `RenameStore`.

    Raises:
        UnsupportedError: the store has no atomic rename.
    """
    if not store.capabilities.rename:
        raise UnsupportedError("the store has no atomic rename")
    return store  # type: ignore[return-value]  # the capability promises it; wrappers implement every method


def transactional(store: ObjectStore) -> TransactionalStore:
    """Return the store as a `TransactionalStore`.

    Raises:
        UnsupportedError: the store makes no transactions.
    """
    if not store.capabilities.transactions:
        raise UnsupportedError("the store cannot make several changes in one step")
    return store  # type: ignore[return-value]  # the capability promises it; wrappers implement every method


def replaced(key: str) -> PreconditionError:
    """Return the error for a read whose object was replaced after the caller had seen its etag."""
    return PreconditionError("the object was replaced while it was read: list again and start over", key=key)


def is_marker(info: ObjectInfo) -> bool:
    """Check whether an object is an empty directory marker, as S3 consoles, s3fs, S3A and s3n create them.

    Markers are named ``x/``, or ``x_$folder$`` if s3n created them. An object with such a name that is not empty is not
    a marker, but data.
    """
    return info.size_bytes == 0 and info.key.endswith(_MARKERS)


_MARKERS = ("/", "_$folder$")


def iter_objects(
    store: ObjectStore, prefix: str, start_after: str = "", page_size: int = 1000, *, markers: bool = False
) -> Iterator[ObjectInfo]:
    """Yield every object whose key starts with `prefix`, in the order that `ObjectStore.list_page` describes.

    Args:
        markers: also yield directory markers, for callers that delete a directory or display a store's content.

    Raises:
        CorruptDataError: the server returned the same page token twice, so the listing would never end.
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
            raise CorruptDataError("a listing does not advance: report it to the vendor of the store", prefix=prefix)
        seen.add(token)


def iter_uploads(store: MultipartStore, prefix: str) -> Iterator[UploadInfo]:
    """Yield every pending upload below `prefix`.

    Filters the server's pages, because some servers also return neighbors (``t1`` for ``t1/``). The markers between
    pages need not be in order (the pages of SeaweedFS are unsorted), but if one occurred twice, the listing would never
    end.

    Args:
        prefix: a directory; must end in ``/`` or be empty, so that ``dataset1`` never matches ``dataset10``.

    Raises:
        InvalidRequestError: the prefix does not end in ``/``.
        CorruptDataError: the server returned the same marker twice.
    """
    if prefix and not prefix.endswith("/"):
        raise InvalidRequestError("uploads are listed below a directory: end the prefix in '/'", prefix=prefix)
    return (upload for upload in _upload_pages(store, prefix) if upload.key.startswith(prefix))


def iter_uploads_of(store: MultipartStore, key: str) -> Iterator[UploadInfo]:
    """Yield every pending upload of exactly one key, for servers that list uploads by whole keys only (MinIO).

    Works on every store, including those that list by directory. Costs at least one call per key.

    Raises:
        InvalidRequestError: no store would accept the key.
        CorruptDataError: the server returned the same marker twice.
    """
    check_key(key)
    return (upload for upload in _upload_pages(store, key) if upload.key == key)


def _upload_pages(store: MultipartStore, prefix: str) -> Iterator[UploadInfo]:
    marker: tuple[str, str] | None = None
    seen: set[tuple[str, str]] = set()
    # The uploads of the marker's key on the previous page: a store may begin the next page with all uploads of that
    # key.
    shown: set[tuple[str, str]] = set()
    while True:
        page = store.list_uploads_page(prefix, marker)
        yield from (upload for upload in page.uploads if (upload.key, upload.upload_id) not in shown)
        marker = page.next_marker
        if marker is None:
            return
        if marker in seen:
            raise CorruptDataError(
                "a listing of uploads does not advance: report it to the vendor of the store", prefix=prefix
            )
        seen.add(marker)
        shown = {(upload.key, upload.upload_id) for upload in page.uploads if upload.key == marker[0]}


def check_key(key: str, max_bytes: int = MAX_KEY_BYTES) -> None:
    """Reject a key that some store would reject or change: empty, with a leading slash, not UTF-8, too long.

    Args:
        max_bytes: the limit of the store, if it accepts longer keys than S3: the same one in all of its calls.

    Raises:
        InvalidRequestError: the key is rejected; the message says why.
    """
    if not key or key.startswith("/"):
        raise InvalidRequestError("a key must not be empty or start with '/': change it", key=key)
    if "\0" in key:
        raise InvalidRequestError("a key must not contain a NUL character: remove it", key=key)
    try:
        size_bytes = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequestError("a key must be valid Unicode: change it", key=key) from error
    if size_bytes > max_bytes:
        raise InvalidRequestError(f"a key is limited to {max_bytes} bytes: shorten it", key=key, bytes=size_bytes)


def check_move(source: str, target: str, max_bytes: int = MAX_KEY_BYTES) -> None:
    """Reject a source or a target that no store's `RenameStore.rename_dir` could accept.

    Args:
        max_bytes: see `check_key`.

    Raises:
        InvalidRequestError: the move is rejected; the message says why.
    """
    for key in (source, target):
        check_key(key, max_bytes)
        if key.endswith("/"):
            raise InvalidRequestError("the key of a directory must not end in a slash: remove it", key=key)
    if f"{target}/".startswith(f"{source}/"):
        raise InvalidRequestError(
            "a directory cannot be moved into itself: choose another target", source=source, target=target
        )


def check_delete(keys: Sequence[str]) -> None:
    """Reject more keys than `ObjectStore.delete_many` accepts in one call.

    Raises:
        InvalidRequestError: there are more than `MAX_KEYS_PER_DELETE`.
    """
    if len(keys) > MAX_KEYS_PER_DELETE:
        raise InvalidRequestError(f"at most {MAX_KEYS_PER_DELETE} keys in one call: use batched_keys", keys=len(keys))


def check_range(start: int, length: int | None) -> None:
    """Reject a range that `ObjectStore.get` could not read from any object.

    Raises:
        InvalidRequestError: a number is negative, or beyond the size of any object.
    """
    if not 0 <= start <= _MOST_NUMBER or (length is not None and not 0 <= length <= _MOST_NUMBER):
        raise InvalidRequestError(
            "a range begins at 0 or later, and its length is not negative: change it", start=start, length=length
        )


def page_size(max_keys: int) -> int:
    """Return how many objects a page of `ObjectStore.list_page` may have: a number that every database accepts.

    Raises:
        InvalidRequestError: the page could not contain anything, so the listing would never end.
    """
    if type(max_keys) is not int or max_keys < 1:
        raise InvalidRequestError("a page has at least one object: change max_keys", max_keys=max_keys)
    return min(max_keys, _MOST_ON_PAGE)


def check_part_number(key: str, number: int, max_parts: int) -> None:
    """Reject a number that no part of an upload can have.

    Raises:
        InvalidRequestError: it is not from 1 to `max_parts`.
    """
    if type(number) is not int or not 1 <= number <= max_parts:
        raise InvalidRequestError("a part number is out of range", key=key, number=number, max_parts=max_parts)


def check_parts(key: str, parts: Sequence[Part]) -> None:
    """Reject a list of parts that `MultipartStore.complete_upload` would not accept for any upload.

    Raises:
        InvalidRequestError: there are no parts, or they are not numbered from 1 without gaps.
    """
    if not parts or [part.number for part in parts] != list(range(1, len(parts) + 1)):
        raise InvalidRequestError("parts must be numbered from 1 without gaps: list all of them in order", key=key)


def check_changes(changes: Iterable[Change], max_bytes: int = MAX_KEY_BYTES) -> None:
    """Reject changes that no store could make in one `TransactionalStore.apply`.

    Args:
        max_bytes: see `check_key`.

    Raises:
        InvalidRequestError: a key is invalid, or two changes have the same one, or parts are missing.
    """
    seen: set[str] = set()
    for change in changes:
        match change:
            case RequireEmpty():
                if not change.key.endswith("/"):
                    raise InvalidRequestError("the key of a directory must end in '/': add it", key=change.key)
            case Require():
                pass
            case _:
                check_key(change.key, max_bytes)
                if isinstance(change, Complete):
                    check_parts(change.key, change.parts)
                if change.key in seen:
                    raise InvalidRequestError("two changes have the same key: make one of them", key=change.key)
                seen.add(change.key)


def batched_keys(keys: Iterable[str], size: int = MAX_KEYS_PER_DELETE) -> Iterator[list[str]]:
    """Split keys into lists that are short enough for `ObjectStore.delete_many`."""
    batch: list[str] = []
    for key in keys:
        batch.append(key)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
