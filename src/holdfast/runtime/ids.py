"""Generate random tokens for the ids of jobs, attempts and probes."""

from __future__ import annotations

import secrets
from typing import Protocol


class Ids(Protocol):
    """A source of unique tokens."""

    def token(self) -> str:
        """Return twelve lower-case hexadecimal digits (48 random bits)."""
        ...


class SystemIds:
    """Tokens from the operating system's random generator; safe after fork."""

    def token(self) -> str:
        return secrets.token_hex(6)
