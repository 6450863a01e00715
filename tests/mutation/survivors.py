"""Mutants that are not caught, and why: each was looked at. A name that fits nothing any more fails ``make
mutants``."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["REVIEWED"]

_BY_REASON: Mapping[str, tuple[str, ...]] = {}

REVIEWED: Mapping[str, str] = {name: reason for reason, names in _BY_REASON.items() for name in names}
"""By name of the mutant, why it is not caught."""
