"""Make a namespace on a shared database available to all modules here."""

from __future__ import annotations

from tests.shared_namespace import shared

__all__ = ["shared"]
