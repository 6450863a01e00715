"""Test groups whose transactions read the same records: such a read is locked and compared once for all of them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
import pytest

from holdfast.transactions.base import ABSENT, Backend, Commit, Committed
from holdfast.transactions.memory import MemoryBackend
from holdfast.transactions.postgres import group
from holdfast.transactions.postgres.group import PostgresGroup, register_arrays
from holdfast.transactions.registry import open_backend
from holdfast.transactions.validation import StepKind
from tests.database_servers import NewUrl
from tests.databases import needs_postgres

_SHARED = [b"p1", b"p2", b"p3"]


@pytest.fixture
def backend(new_postgres_url: NewUrl) -> Iterator[Backend]:
    found = open_backend(new_postgres_url(), create=True, group_commits=False)
    try:
        yield found
    finally:
        found.close()


def test_equal_reads_are_one_step() -> None:
    group = PostgresGroup.of([Commit(reads={b"p": 7, b"q": one}, inserts={b"x%d" % one: b""}) for one in (1, 2, 2)])
    assert [(step.key, step.call, step.expected) for step in group.steps if step.kind is StepKind.READ] == [
        (b"p", 0, 7),
        (b"q", 0, 1),
        (b"q", 1, 2),
    ]
    assert group.sharers == [(1, 1), (1, 2), (3, 2)]


def test_what_is_written_is_not_shared() -> None:
    group = PostgresGroup.of([Commit(reads={b"n": 1}, adds={b"n": 1}), Commit(adds={b"n": 1}), Commit(adds={b"n": 2})])
    assert [step.call for step in group.steps] == [0, 1, 2] and group.sharers == []


@needs_postgres
@pytest.mark.parametrize("seed", range(3))
def test_whoever_read_an_old_version_conflicts_and_nobody_else(backend: Backend, seed: int) -> None:
    """The memory database shares nothing: every transaction must fare as it does there."""
    chance, memory = random.Random(seed), MemoryBackend()
    backends: Sequence[Backend] = (backend, memory)
    for one in backends:
        for _ in range(2):
            one.commit(Commit(puts=dict.fromkeys(_SHARED[:2], b"")))
    fates: set[type] = set()
    for number in range(30):
        old = [_versions(one) for one in backends]
        changed = chance.sample(_SHARED, chance.randint(0, 2))
        for one in backends:
            one.commit(Commit(puts=dict.fromkeys(changed, b"%d" % number)))
        new = [_versions(one) for one in backends]
        reads = [{key: chance.random() < 0.3 for key in _SHARED if chance.random() < 0.7} for _ in range(8)]
        outcomes = [
            one.commit_group(
                [
                    Commit(
                        reads={key: (before if is_old else after)[key] for key, is_old in wanted.items()},
                        inserts={b"child%d-%d" % (number, call): b""},
                    )
                    for call, wanted in enumerate(reads)
                ]
            )
            for one, before, after in zip(backends, old, new, strict=True)
        ]
        assert [type(one) for one in outcomes[0]] == [type(one) for one in outcomes[1]]
        fates.update(map(type, outcomes[0]))
        assert [key for key, _ in backend.scan(b"child", b"childz", 1000).records] == [
            key for key, _ in memory.scan(b"child", b"childz", 1000).records
        ]
    assert len(fates) == 2 and Committed in fates


def _versions(backend: Backend) -> Mapping[bytes, int]:
    found = backend.get_many(_SHARED)
    return {key: found[key].version if key in found else ABSENT for key in _SHARED}


# --- arrays -----------------------------------------------------------------------------------------------------------
_CASES: Sequence[tuple[Callable[[Any], bytes], str, Sequence[object]]] = (
    (group._int2s, "smallint[]", (0, 1, -1, 32767, -32768)),
    (group._int4s, "integer[]", (0, 1, -1, 2**31 - 1, -(2**31))),
    (group._int8s, "bigint[]", (0, 1, -1, 2**63 - 1, -(2**63))),
    (group.byte_array, "bytea[]", (b"", b"\0", b"NULL", b'\\x"{},', bytes(range(256)), b"1" * 100_000)),
)


@needs_postgres
@pytest.mark.parametrize(("encode", "kind", "values"), _CASES, ids=[case[1] for case in _CASES])
def test_the_server_reads_what_was_encoded(
    new_postgres_url: NewUrl, encode: Callable[[Any], bytes], kind: str, values: Sequence[object]
) -> None:
    with psycopg.connect(new_postgres_url()) as connection:
        register_arrays(connection)
        for count in range(len(values) + 1):
            query = f"SELECT %s::{kind}, pg_typeof(%s::{kind})::text, cardinality(%s::{kind})"
            row = connection.execute(query, [encode(values[:count])] * 3).fetchone()
            assert row == (list(values[:count]), kind, count)


def test_a_number_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(struct.error):
        group._int4s([2**31])
