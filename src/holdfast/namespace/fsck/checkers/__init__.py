"""One checker for each kind of finding, in the order of a report and of a repair."""

from holdfast.namespace.fsck.checkers.registry import CHECKERS

__all__ = ["CHECKERS"]
