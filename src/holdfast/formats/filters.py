"""Define conditions on rows, which readers apply to each batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition on the rows of a batch. A row passes if the result is true; null does not pass.

    Attributes:
        expression: a `pyarrow.compute.Expression` over column names.
        columns: the names of the columns in `expression`, which Arrow cannot list.
    """

    expression: Any
    columns: frozenset[str]


def require_all(filters: Sequence[RowFilter]) -> RowFilter | None:
    """Combine the filters into one that a row passes only if it passes all of them; return None if there are none."""
    if not filters:
        return None
    expression = filters[0].expression
    for other in filters[1:]:
        expression = expression & other.expression
    return RowFilter(expression, frozenset().union(*(one.columns for one in filters)))
