"""Choose how many units share a commit."""

from __future__ import annotations

_CLEAN_GROUPS = 10
_LONGEST_S = 1.0
_FIRST = 16


class GroupSize:
    """A number of units that adapts: halved after a conflict or a long group, doubled after ten groups without one.

    Attributes:
        now: how many units the next group has.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._clean = 0
        self.now = min(_FIRST, most)

    def committed(self, duration_s: float) -> None:
        """Note a group that was committed; others could see nothing of it for so long."""
        if duration_s > _LONGEST_S:
            self.conflicted()
            return
        self._clean += 1
        if self._clean >= _CLEAN_GROUPS:
            self._clean = 0
            self.now = min(2 * self.now, self._most)

    def conflicted(self) -> None:
        """Note a group that was not committed."""
        self._clean = 0
        self.now = max(1, self.now // 2)
