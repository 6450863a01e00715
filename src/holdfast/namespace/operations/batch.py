"""Carry out many operations in one step.

The operations become one transaction, however many they are. A large step is prepared part by part (`Parts`): only one
part at a time exists as inodes and views; of the others, there are only the keys and bytes that will be written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain as chained
from itertools import islice
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.namespace.inode import Inode
from holdfast.namespace.operation import Changes, Context, Operation, grown_only
from holdfast.namespace.operations.files import Publish, WriteUnderLease
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import Chain, Entry, Follower, View
from holdfast.transactions.base import ABSENT

MOST_FILES = 10_000
MOST_INLINE_BYTES = 4 * 1024 * 1024
"""How many bytes of files one step may write into the database: all of them are in memory at the same time."""

_PART = 1000


@dataclass(frozen=True, slots=True)
class Batch:
    """Carry out operations in one step. Each concerns one path, and they are different ones.

    Group: those of all operations. None of them may ask for a range.
    """

    operations: Sequence[Operation[Any]]

    @property
    def paths(self) -> Sequence[NsPath]:
        """The paths of all operations."""
        return [one.paths[0] for one in self.operations]

    def also(self, chains: Sequence[Chain]) -> Collection[bytes]:
        """Return what the operations ask for."""
        pairs = zip(self.operations, chains, strict=True)
        return list(chained.from_iterable(one.also((chain,)) for one, chain in pairs))

    def peek(self, chains: Sequence[Chain]) -> tuple[bytes, bytes] | None:
        """Return no range."""
        return None

    def execute(self, view: View, context: Context) -> Changes[None]:
        """Carry out the operations one after the other; each sees the directories that those before it make.

        Raises:
            HoldfastError: one of them is impossible: see there.
        """
        changes: Changes[None] = Changes(None)

        def made(key: bytes) -> Inode | None:
            return changes.inserts.get(key) or view.made(key)

        def look(key: bytes) -> Entry | None:
            inode = made(key)
            return view.entries.get(key) if inode is None else Entry(ABSENT, inode)

        follower = Follower(look)
        seen = replace(view)  # each operation sees its own path
        for one, chain in zip(self.operations, view.chains, strict=True):
            seen.chains = (chain if made(chain.keys[-1]) is None else follower.follow(chain.path),)
            part = one.execute(seen, context)
            merge(changes, part)
            if len(part.inserts) > 1:
                follower.forget()  # directories were made
        changes.bounds = grown_only(changes.bounds, changes.adds)
        return changes


def merge(changes: Changes[None], part: Changes[Any]) -> None:
    """Add the changes of one operation. Paths differ, so only counters occur twice."""
    changes.inserts.update(part.inserts)
    changes.puts.update(part.puts)
    changes.values.update(part.values)
    changes.new_values.update(part.new_values)
    changes.deletes |= part.deletes
    for key, delta in part.adds.items():
        changes.adds[key] = changes.adds.get(key, 0) + delta
    changes.bounds += part.bounds
    changes.ranges += part.ranges
    changes.touched |= part.touched


def in_parts(operations: Iterable[Operation[Any]]) -> Iterator[Batch]:
    """Yield the parts of one step."""
    rest = iter(operations)
    while part := list(islice(rest, _PART)):
        yield Batch(part)


def check_files(operations: Sequence[Publish | WriteUnderLease]) -> None:
    """Check that files can be published in one step.

    Raises:
        InvalidRequestError: there are too many files, or two have the same path.
    """
    if len(operations) > MOST_FILES:
        raise InvalidRequestError(
            f"at most {MOST_FILES} files can appear in one step: publish fewer", files=len(operations)
        )
    inline_bytes = sum(len(data) for one in operations for data in one.data.values())
    if inline_bytes > MOST_INLINE_BYTES:
        raise InvalidRequestError(
            f"at most {MOST_INLINE_BYTES} bytes can go into the database in one step: prepare files with inline=False",
            bytes=inline_bytes,
        )
    seen = set[NsPath]()
    for one in operations:
        if one.path in seen:
            raise InvalidRequestError("a path occurs twice in one step: write each file once", path=str(one.path))
        seen.add(one.path)
