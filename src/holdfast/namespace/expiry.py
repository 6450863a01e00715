"""Tell when blobs are too old to be published: a sweep, which sees no file that refers to them, may delete them."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.runtime import Clock, Moment


@dataclass(frozen=True, slots=True)
class Expiry:
    """How long blobs may wait for their publication.

    Attributes:
        since: when they were stored, or earlier.
        most_age_s: how old they may be.
    """

    clock: Clock
    since: Moment
    most_age_s: float

    def is_over(self) -> bool:
        """Check whether a sweep may take the blobs for garbage that a dead writer has left."""
        return self.since.age_s(self.clock) > self.most_age_s

    def is_near(self) -> bool:
        """Check whether half of the time is over: then a repair may soon give the blobs to a file, so their writer
        leaves them to a sweep instead of deleting them."""
        return self.since.age_s(self.clock) > self.most_age_s / 2
