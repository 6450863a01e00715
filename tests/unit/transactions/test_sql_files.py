"""The SQL of a backend is in files beside it."""

from __future__ import annotations

import pytest

from holdfast.transactions.sql_files import load_queries


@pytest.mark.parametrize("backend", ["sqlite", "postgres"], ids=["a file", "a server"])
def test_a_query_is_what_follows_its_name_without_comments(backend: str) -> None:
    queries = load_queries.__wrapped__(f"holdfast.transactions.{backend}")
    assert queries == load_queries(f"holdfast.transactions.{backend}")
    for query in queries.values():
        assert query and not query.endswith(";")
        assert not any(line.startswith("--") or not line.strip() for line in query.splitlines())
