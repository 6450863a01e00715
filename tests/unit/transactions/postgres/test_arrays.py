"""Test that the server reads the arrays as the values that were encoded."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest

from holdfast.transactions.postgres.arrays import ByteaArray, Int2Array, Int4Array, Int8Array, register_arrays
from tests.database_servers import NewUrl
from tests.databases import needs_postgres

_CASES: Sequence[tuple[Callable[[Any], bytes], str, Sequence[object]]] = (
    (Int2Array.of, "smallint[]", (0, 1, -1, 32767, -32768)),
    (Int4Array.of, "integer[]", (0, 1, -1, 2**31 - 1, -(2**31))),
    (Int8Array.of, "bigint[]", (0, 1, -1, 2**63 - 1, -(2**63))),
    (ByteaArray.of, "bytea[]", (b"", b"\0", b"NULL", b'\\x"{},', bytes(range(256)), b"1" * 100_000)),
)


@needs_postgres
@pytest.mark.parametrize(("encode", "kind", "values"), _CASES, ids=[case[1] for case in _CASES])
def test_the_server_reads_what_was_encoded(
    new_postgres_url: NewUrl, encode: Callable[[Any], bytes], kind: str, values: Sequence[object]
) -> None:
    with psycopg.connect(new_postgres_url()) as connection:
        register_arrays(connection)
        for count in range(len(values) + 1):
            query = f"SELECT %s::{kind}, pg_typeof(%s)::text, cardinality(%s)"
            row = connection.execute(query, [encode(values[:count])] * 3).fetchone()
            assert row == (list(values[:count]), kind, count)


def test_a_number_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(struct.error):
        Int4Array.of([2**31])
