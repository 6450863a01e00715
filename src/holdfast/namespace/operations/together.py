"""Publish several files in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.errors import InvalidRequestError
from holdfast.namespace.changes import Changes
from holdfast.namespace.inode import Inode
from holdfast.namespace.operation import Context
from holdfast.namespace.operations.base import grown
from holdfast.namespace.operations.files import FileGroup, Publish, WriteUnderLease
from holdfast.namespace.paths import NsPath
from holdfast.namespace.view import View

__all__ = ["MOST_FILES", "MOST_INLINE_BYTES", "Together"]

MOST_FILES = 10_000
MOST_INLINE_BYTES = 4 * 1024 * 1024
"""What one step may write into the database: with the inodes, no more than the smallest packet of a server, 16 MiB."""


@dataclass(frozen=True, slots=True)
class Together(FileGroup):
    """Carry out operations on different files in one step; returns their inodes.

    Group: those of all operations.

    Raises:
        InvalidRequestError: there are too many files, or two have the same path.
    """

    operations: tuple[Publish | WriteUnderLease, ...]

    def __post_init__(self) -> None:
        if len(self.operations) > MOST_FILES:
            raise InvalidRequestError(
                f"at most {MOST_FILES} files can appear in one step: publish fewer", files=len(self.operations)
            )
        inline_bytes = sum(len(data) for one in self.operations for data in one.data.values())
        if inline_bytes > MOST_INLINE_BYTES:
            raise InvalidRequestError(
                f"at most {MOST_INLINE_BYTES} bytes can go into the database in one step: prepare files with "
                "inline=False",
                bytes=inline_bytes,
            )
        seen = set[NsPath]()
        for one in self.operations:
            if one.path in seen:
                raise InvalidRequestError("a path occurs twice in one step: write each file once", path=str(one.path))
            seen.add(one.path)

    @property
    def paths(self) -> Sequence[NsPath]:
        """The paths of all operations."""
        return [one.path for one in self.operations]

    def execute(self, view: View, context: Context) -> Changes[list[Inode]]:
        """Carry out the operations one after the other; each sees the directories that those before it make.

        Raises:
            HoldfastError: one of them is impossible: see `Publish` and `WriteUnderLease`.
        """
        changes: Changes[list[Inode]] = Changes([])
        for one, chain in zip(self.operations, view.chains, strict=True):
            part = one.execute(replace(view, chains=(grown(chain, view, changes),)), context)
            changes.result.append(part.result)
            _merge(changes, part)
        changes.bounds = [bound for bound in dict.fromkeys(changes.bounds) if changes.adds[bound.key] > 0]
        return changes


def _merge(changes: Changes[Any], part: Changes[Any]) -> None:
    """Add the changes of one file. Files differ, so only counters occur twice."""
    changes.inserts.update(part.inserts)
    changes.puts.update(part.puts)
    changes.values.update(part.values)
    changes.new_values.update(part.new_values)
    changes.deletes |= part.deletes
    for key, delta in part.adds.items():
        changes.adds[key] = changes.adds.get(key, 0) + delta
    changes.bounds += part.bounds
    changes.touched |= part.touched
