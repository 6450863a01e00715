"""Integrate Holdfast with Spark: the data source ``holdfast``, `register`, and the functions of the package `holdfast`.

Spark's worker processes also import this package, so modules that only the user's process needs are imported on first
use.
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
