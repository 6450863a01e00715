"""Files of others are told by their paths, sizes and times, whatever lies beside them."""

from __future__ import annotations

import pytest

from holdfast.stores.base import ObjectInfo
from holdfast.table.fingerprint import fingerprint

OURS = "k=1/part-00003-20261121101500123-0123456789ab-cdef01234567-00000.snappy.parquet"


def info(size_bytes: int = 1, modified_at_s: float = 1.5) -> ObjectInfo:
    return ObjectInfo("t/x", size_bytes, modified_at_s=modified_at_s)


def test_the_order_does_not_count() -> None:
    files = [("a", info()), ("b", info(2)), ("c/d", info(3))]
    assert fingerprint(files) == fingerprint(reversed(files)) != fingerprint(files[:2])


@pytest.mark.parametrize("other", [("b", info()), ("a", info(2)), ("a", info(modified_at_s=2.0))])
def test_another_file_is_another_set(other: tuple[str, ObjectInfo]) -> None:
    assert fingerprint([("a", info())]) != fingerprint([other])
    assert fingerprint([("a", info())]) != fingerprint([("a", info()), other])


def test_empty_files_and_those_of_holdfast_do_not_count() -> None:
    assert fingerprint([("a", info())]) == fingerprint([("a", info()), ("b", info(0)), (OURS, info())])
