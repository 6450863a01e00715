"""Chance as a value: random tokens for jobs, attempts and probes."""

from __future__ import annotations

import secrets
from typing import Protocol

__all__ = ["Ids", "SystemIds"]


class Ids(Protocol):
    """A source of tokens that are never handed out twice."""

    def token(self) -> str:
        """Twelve lower-case hexadecimal digits (48 random bits)."""
        ...


class SystemIds:
    """Tokens from the operating system's random source; safe after fork."""

    def token(self) -> str:
        return secrets.token_hex(6)
