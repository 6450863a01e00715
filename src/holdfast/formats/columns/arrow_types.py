"""Recognize groups of Arrow types, and look into nested ones."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pat


def is_string(kind: pa.DataType) -> bool:
    """Check whether the type is one of Arrow's string types."""
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Check whether the type is one of Arrow's binary types."""
    return bool(
        pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_fixed_size_binary(kind) or pat.is_binary_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Check whether the type is an Arrow list type that a file can store; this excludes list views."""
    return bool(pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind))


def child_fields(kind: pa.DataType) -> list[pa.Field]:
    """Return the direct child fields of a nested Arrow type; none for other types."""
    return [kind.field(i) for i in range(kind.num_fields)] if pat.is_nested(kind) else []


def contains_type(kind: pa.DataType, matches: Callable[[pa.DataType], bool]) -> bool:
    """Check whether `matches` is true for a type or for any type nested in it."""
    return matches(kind) or any(contains_type(child.type, matches) for child in child_fields(kind))
