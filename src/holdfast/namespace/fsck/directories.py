"""Keep the tree of millions of directories in arrays, and find out what can be reached from where.

Inodes come in the order of their keys, so the children of a directory are next to each other: two searches in a sorted
array find them, and no list of children is needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from holdfast.namespace.fsck.ids import IdArray, IdMap
from holdfast.namespace.inode import Inode
from holdfast.namespace.keys import NO_PARENT, ROOT_ID

Region = int

UNSEEN, LIVE, WAITING, LOST = 0, 1, 2, 3
"""Where a directory is: nowhere yet; in the tree; in a deleted tree that waits for its collection; in neither."""

_MOST_SPACE = 2**64 - 1


class Directories:
    """All directories, and how many entries each of them has. Add all inodes, then `sort`, then ask.

    Attributes:
        count: how many directories there are.
    """

    def __init__(self) -> None:
        self._ids = IdArray()
        self._parents = IdArray()
        self._regions = bytearray()
        self._positions = IdMap()
        # What the directories contain: of each parent id, whether it exists or not.
        self._holders = IdArray()
        self._names = array("Q")
        self._space = array("Q")

    @property
    def count(self) -> int:
        return len(self._ids)

    # --- the pass -----------------------------------------------------------------------------------------------------
    def add(self, parent_id: int, inode: Inode) -> None:
        """Add an inode; they come in the order of their keys."""
        if not len(self._holders) or self._holders[-1] != parent_id:
            self._holders.append(parent_id)
            self._names.append(0)
            self._space.append(0)
        self._names[-1] += 1
        self._space[-1] = min(self._space[-1] + inode.space, _MOST_SPACE)
        if inode.is_directory:
            self._positions.add(inode.id, len(self._ids))
            self._ids.append(inode.id)
            self._parents.append(parent_id)

    def sort(self) -> None:
        """Prepare for questions."""
        self._positions.sort()
        self._regions = bytearray(len(self._ids))

    # --- questions ----------------------------------------------------------------------------------------------------
    def __contains__(self, number: int) -> bool:
        return self._positions.get(number) is not None

    def parent(self, number: int) -> int | None:
        """Return the id of the parent of a directory; None if there is no such directory."""
        at = self._positions.get(number)
        return None if at is None else self._parents[at]

    def region(self, number: int) -> Region:
        """Return where a directory is; `UNSEEN` if there is no such directory."""
        at = self._positions.get(number)
        return UNSEEN if at is None else self._regions[at]

    def entries(self, number: int) -> tuple[int, int]:
        """Return how many entries a directory has, and their space."""
        first, end = self._holders.span(number)
        return (self._names[first], self._space[first]) if first < end else (0, 0)

    def holders(self) -> Iterator[tuple[int, int]]:
        """Yield each id that is the parent of an inode, except that of the root, and the number of its children."""
        for number, names in zip(self._holders, self._names, strict=True):
            children = names - (number == NO_PARENT and ROOT_ID in self)
            if children:
                yield number, children

    def unseen(self) -> Iterator[int]:
        """Yield the ids of directories that no walk has reached so far; the caller may walk from each of them."""
        at = self._regions.find(UNSEEN)
        while at >= 0:
            yield self._ids[at]
            at = self._regions.find(UNSEEN, at + 1)

    def walk(self, root: int, region: Region, owners: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Visit what can be reached from a directory, which need not exist itself, and note where it is.

        Args:
            owners: maps some directories to themselves: those with quotas.

        Yields:
            Each directory that was not visited before, `root` included, and the nearest directory in `owners` on the
            way to it, itself included; 0 if there is none.
        """
        at = self._positions.get(root)
        if at is not None:
            if self._regions[at]:
                return
            self._regions[at] = region
        owner = owners.get(root, 0)
        yield root, owner
        stack = [(*self._children(root), owner)]
        while stack:
            low, high, owner = stack.pop()
            if low == high:
                continue
            stack.append((low + 1, high, owner))
            if self._regions[low]:
                continue
            self._regions[low] = region
            number = self._ids[low]
            owner = owners.get(number, owner)
            yield number, owner
            stack.append((*self._children(number), owner))

    def _children(self, number: int) -> tuple[int, int]:
        """Return the positions of the directories in a directory: from the first, up to and without the second."""
        return self._parents.span(number)
