"""The CRC-32C that HDFS computes."""

from __future__ import annotations

from holdfast.namespace.file_reader import _build_crc_table, crc32c_of_pieces


def test_the_table_is_that_of_the_castagnoli_polynomial() -> None:
    """RFC 3720, and Intel's instruction."""
    table = _build_crc_table()
    assert len(table) == 256
    assert [table[byte] for byte in (0, 1, 2, 128, 255)] == [0, 0xF26B8303, 0xE13B70F7, 0x82F63B78, 0xAD7D5351]
    assert crc32c_of_pieces(b"123456789") == 0xE3069283.to_bytes(4, "big")
