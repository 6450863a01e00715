"""The documents of answers: blocks of files, and pages of directories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.namespace.errors import FeatureUnsupportedError
from holdfast.namespace.listing import FileStatus
from holdfast.webhdfs.documents import block_ranges, decode_xattr_value, directory_listing
from tests.namespace_world import World


def _status(size: int, block_size: int) -> FileStatus:
    namespace = World().client()
    namespace.write_file("/f", b"")
    return replace(namespace.status("/f"), size=size, block_size=block_size)


@pytest.mark.parametrize(
    ("offset", "length", "blocks"),
    [
        (0, 2**63 - 1, [(0, 10), (10, 10), (20, 5)]),
        (0, 10, [(0, 10)]),
        (0, 11, [(0, 10), (10, 10)]),
        (9, 1, [(0, 10)]),
        (9, 2, [(0, 10), (10, 10)]),
        (10, 10, [(10, 10)]),
        (19, 1, [(10, 10)]),
        (20, 1, [(20, 5)]),
        (24, 100, [(20, 5)]),
        (25, 1, []),
        (0, 0, []),
        (100, 100, []),
    ],
)
def test_the_blocks_of_a_range_are_those_that_it_touches(
    offset: int, length: int, blocks: list[tuple[int, int]]
) -> None:
    assert block_ranges(_status(25, 10), offset, length) == blocks


def test_a_file_may_be_empty_or_end_with_a_block() -> None:
    assert block_ranges(_status(0, 10), 0, 100) == []
    assert block_ranges(_status(20, 10), 0, 100) == [(0, 10), (10, 10)]


def test_pages_follow_one_another_to_the_last_one() -> None:
    namespace = World().client()
    names = [f"f{number}" for number in range(5)]
    for name in names:
        namespace.write_file(f"/d/{name}", b"")
    found, remaining, after = list[str](), list[object](), ""
    while not remaining or remaining[-1]:
        document = directory_listing("/d", namespace.list_page("/d", start_after=after, limit=2))["DirectoryListing"]
        assert isinstance(document, dict)
        found += [one["pathSuffix"] for one in document["partialListing"]["FileStatuses"]["FileStatus"]]
        remaining.append(document["remainingEntries"])
        after = found[-1]
    assert found == names
    assert remaining == [1, 1, 0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x00fF", b"\x00\xff"),
        ("0X41", b"A"),
        ("0sAP8=", b"\x00\xff"),
        ("text", b"text"),
        ('"text"', b"text"),
        ('"', b'"'),
        ('"text', b'"text'),
        ("", b""),
    ],
)
def test_a_value_of_an_attribute_is_decoded_as_it_says(text: str, value: bytes) -> None:
    assert decode_xattr_value(text) == value


@pytest.mark.parametrize("text", ["0xg0", "0x1", "0s%", "0sA"])
def test_a_value_that_is_not_encoded_as_it_says_is_refused(text: str) -> None:
    with pytest.raises(FeatureUnsupportedError):
        decode_xattr_value(text)
