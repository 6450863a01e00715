"""Define what an operation on the namespace is: a value with the paths that it concerns, and with its execution phase.

`phases` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from holdfast.namespace.changes import Changes
from holdfast.namespace.paths import NsPath
from holdfast.namespace.permissions import Caller
from holdfast.namespace.view import Chain, View

R = TypeVar("R")

Mode = Literal["optimistic", "pessimistic", "global"]


@dataclass(frozen=True, slots=True)
class Context:
    """What the execution of an operation may use besides its view.

    Attributes:
        now_ms: the time, milliseconds since the epoch.
        new_id: returns an inode id that was never used.
    """

    caller: Caller
    now_ms: int
    new_id: Callable[[], int]


class Operation(Protocol[R]):
    """An operation on the namespace: a value with the paths that it concerns."""

    @property
    def paths(self) -> Sequence[NsPath]:
        """The paths whose inodes are the semantic related group."""
        ...

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return the keys of other records of the group, such as a lease, given the chains of the paths."""
        ...

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return a range of keys if the operation must know whether it contains a record; else None."""
        ...

    def execute(self, view: View, context: Context) -> Changes[R]:
        """Carry out the operation on its view. Calls with the same arguments return the same changes, but for new ids.

        Raises:
            HoldfastError: the operation is impossible in this state of the namespace.
        """
        ...


Parts = Callable[[], Iterable[Operation[None]]]
"""Returns the parts of an operation, anew for each try: there is at least one."""
