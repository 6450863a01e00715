"""Notice that a database has lost some of the transactions that one call has committed, while others came after them.

Each of them adds 1 to the number of a record of the call. A database that forgets loses its newest commits, so one that
is lost is missing in the number from then on, whatever is committed later.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TypeVar

from holdfast.errors import ConflictError, HoldfastError
from holdfast.records.keys import commit_count_key, old_commit_counts_range
from holdfast.records.paging import read_pages
from holdfast.runtime import Environment
from holdfast.transactions.base import Backend, Commit, Committed

_log = logging.getLogger(__name__)

T = TypeVar("T")


def in_several_commits(
    batches: Iterable[T], backend: Backend, environment: Environment
) -> Iterator[tuple[T, Mapping[bytes, int]]]:
    """Yield batches, of which the caller commits each in a transaction, with what that adds to records besides.

    Guarantee: when the iterator ends, all of these transactions have taken effect, durably. A single one adds nothing,
    and is only as durable as any other.

    Raises:
        ConflictError: the database has lost some of them.
        UnavailableError, UnsupportedError: see `make_durable`; they have perhaps taken effect.

    Crash: a small record remains, for `delete_old_counts`.
    """
    found = iter(batches)
    first = list(islice(found, 2))
    if len(first) < 2:
        yield from ((batch, {}) for batch in first)
        return
    key = commit_count_key(environment.clock.now_s(), environment.ids.token())
    count = 0
    for batch in chain(first, found):
        yield batch, {key: 1}
        count += 1
    backend.make_durable()
    record = backend.get_many([key]).get(key)
    if record is None or record.number < count or not delete_if_unchanged(backend, key, record.version):
        raise ConflictError(
            "the database has lost some of what this call had written, perhaps in a failover: call it again with the "
            "same values; but look first if one that is written twice counts twice, as in a sum or in a history: the "
            "others are there"
        )


def delete_if_unchanged(backend: Backend, key: bytes, version: int) -> bool:
    """Delete a record, unless it has changed, and return whether it has not. If that fails, a collection deletes it."""
    try:
        return isinstance(backend.commit(Commit(reads={key: version}, deletes=[key])), Committed)
    except HoldfastError as error:
        _log.info("a record that is not needed anymore will be deleted by a collection: %s", error)
        return True


def delete_old_counts(backend: Backend, environment: Environment, older_than_s: float) -> int:
    """Delete the records of calls that began long ago, and have probably died; return how many there were.

    Guarantee: a call that goes on nevertheless fails.
    """
    deleted = 0
    for page in read_pages(backend, *old_commit_counts_range(environment.clock.now_s() - older_than_s)):
        backend.commit(Commit(deletes=[key for key, _record in page]))
        deleted += len(page)
    return deleted
