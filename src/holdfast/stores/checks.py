"""Check the arguments of calls to stores, so that all stores refuse the same ones with the same messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.errors import InvalidRequestError
from holdfast.stores.base import MAX_KEY_BYTES, MAX_KEYS_PER_DELETE, Change, Complete, Part, Require, RequireEmpty

_MOST_NUMBER = 2**63 - 1
_MOST_ON_PAGE = 2**31 - 2
"""So many, and one more, every database and every request can ask for."""


def check_key(key: str, max_bytes: int = MAX_KEY_BYTES) -> None:
    """Reject a key that some store would reject or change: empty, with a leading slash, not UTF-8, too long.

    Args:
        max_bytes: the store's limit, if it accepts longer keys than S3; a store passes the same limit in all calls.

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
    """Reject a part number that no part of an upload can have.

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
