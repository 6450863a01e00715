"""Create records that are never overwritten, and resolve lost replies by comparing contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from holdfast.errors import (
    HoldfastError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StorageFullError,
    UnavailableError,
    UnsupportedError,
)
from holdfast.runtime import Clock
from holdfast.stores.base import Change, Create, ObjectStore, Overwrite, Put, transactional

_ATTEMPTS = 6

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStore:
    """A directory of small records in a store.

    Attributes:
        prefix: key prefix of the directory: empty, or ending in ``/``.
        url: the directory as a person writes it, without credentials; for error messages.
        conditional: False for a store without conditional writes, where two writers may both believe that they created
            a record.
    """

    store: ObjectStore
    prefix: str
    url: str
    clock: Clock
    conditional: bool = True

    def key(self, path: str) -> str:
        """Return the store's key for a path relative to the directory."""
        return self.prefix + path

    def read(self, path: str) -> bytes:
        """Return the bytes of a record.

        Raises:
            NotFoundError: there is no such record.
        """
        return self.store.get(self.key(path))

    def exists(self, path: str) -> bool:
        """Check whether a record exists."""
        try:
            self.store.head(self.key(path))
        except NotFoundError:
            return False
        return True

    def create(self, path: str, data: bytes) -> bytes:
        """Create a record unless it exists, and return the bytes that it has now.

        Guarantee: returns `data` if this call created the record, even if the reply was lost; returns the other
        writer's bytes if another writer created it. After a lost reply, this method writes again under the same
        condition and compares contents, so `data` must differ from what any other writer would write: include a random
        token.

        Raises:
            OutcomeUnknownError: the store did not answer. Read the record before doing anything else.
            UnavailableError: nothing was written. Retry later; if it is a StorageFullError, free space first.
            NotFoundError: the store itself, such as a bucket, does not exist.
            UnsupportedError: the store refuses conditional writes.
        """

        def attempt() -> bytes:
            if self._put_new(path, data):
                return data
            try:
                return self.read(path)
            except NotFoundError as error:  # S3 answers 409 while another write of the key is in flight: ask again
                raise UnavailableError("another write of the record is in flight: repeat", record=path) from error

        return self._until_answered(path, attempt)

    def create_with(self, path: str, data: bytes, changes: Sequence[Change]) -> bytes:
        """Create a record and make other changes, in one step, unless the record exists; return the bytes it has now.

        Requires: the store makes transactions.

        Guarantee: as for `create`; the changes are made if and only if this call creates the record.

        Raises also:
            PreconditionError, NotFoundError: the store refused one of `changes`, and the record does not exist. Nothing
                happened.
        """
        store = transactional(self.store)
        whole = [Put(self.key(path), data, Create()), *changes]

        def attempt() -> bytes:
            try:
                store.apply(whole)
            except (PreconditionError, NotFoundError) as refused:
                # Another writer was first, or an earlier attempt of this call took effect and its reply was lost.
                try:
                    return self.read(path)
                except NotFoundError:
                    raise refused from None
            return data

        return self._until_answered(path, attempt)

    def put_with(self, path: str, data: bytes, conditions: Sequence[Change]) -> None:
        """Create or replace a record, in one step with `conditions`, which change nothing. Idempotent.

        Requires: the store makes transactions.

        Raises:
            PreconditionError, NotFoundError: the store refused one of `conditions`.
            OutcomeUnknownError, UnavailableError: see `create`.
        """
        store = transactional(self.store)
        self._until_answered(path, lambda: store.apply([Put(self.key(path), data), *conditions]))

    def _until_answered(self, path: str, attempt: Callable[[], T]) -> T:
        """Return the result of the first attempt that the store answers; each attempt finds out about those before."""
        last: HoldfastError | None = None
        unknown = False
        for number in range(_ATTEMPTS):
            if number:
                self.clock.sleep(min(0.1 * 2**number, 5.0))
            try:
                return attempt()
            except (OutcomeUnknownError, UnavailableError) as error:
                last = error
                unknown = unknown or isinstance(error, OutcomeUnknownError)
        if isinstance(last, StorageFullError) and not unknown:
            raise last
        kind = OutcomeUnknownError if unknown else UnavailableError
        raise kind(
            "a record could not be written: run the same command again",
            url=self.url,
            record=path,
            reason=str(last),
        ) from last

    def _put_new(self, path: str, data: bytes) -> bool:
        """Write the record if it does not exist; return False if it does."""
        key = self.key(path)
        if self.conditional:
            try:
                self.store.put(key, data, Create())
            except PreconditionError:
                return False
            except UnsupportedError as error:
                raise UnsupportedError(
                    "the store refuses conditional writes, by which one of two writers would learn of the other: use "
                    "another store, or accept that with allow_unfenced",
                    url=self.url,
                ) from error
            return True
        if self.exists(path):  # check, then write: the best that a store without conditional writes allows
            return False
        self.store.put(key, data, Overwrite())
        return False
