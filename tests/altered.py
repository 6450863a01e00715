"""Make copies of committers with other attributes or steps."""

from __future__ import annotations

import copy

from holdfast.commit import Committer

__all__ = ["altered"]


def altered(committer: Committer, **changes: object) -> Committer:
    """Return a copy of `committer` with other attributes, or other steps in place of its methods."""
    found = copy.copy(committer)
    for name, value in changes.items():
        assert hasattr(committer, name), name
        setattr(found, name, value)
    return found
