"""Say how long tests wait: longer than any machine needs, however busy it is, so that only a hang ends a wait."""

from __future__ import annotations

__all__ = ["PATIENCE_S", "POLL_S"]

PATIENCE_S = 900.0
"""The limit of every wait for something that must happen."""

POLL_S = 0.05
"""The pause between two checks for it."""
