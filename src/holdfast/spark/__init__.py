"""Holdfast in Spark: the data source ``holdfast``, `register`, and what is behind `holdfast.write` and `holdfast.read`.

Spark's worker processes import this package, too: what only the user's process needs is loaded when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.spark.session import register

__all__ = ["register"]


def __getattr__(name: str) -> object:
    if name == "register":
        from holdfast.spark.session import register

        return register
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
