"""Change files and directories, with everything below them if wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.cli.fs.command import THREADS
from holdfast.cli.fs.descent import descend
from holdfast.cli.fs.items import Item
from holdfast.cli.fs.problems import Problems
from holdfast.cli.output import Output
from holdfast.errors import HoldfastError
from holdfast.namespace import FileStatus
from holdfast.runtime import ThreadRunner
from holdfast.wording import counted


def change_all(
    items: Sequence[Item],
    change: Callable[[Item], None],
    *,
    recursive: bool,
    out: Output,
    is_late: Callable[[FileStatus], bool] = lambda status: False,
) -> None:
    """Change items, and end the command with the number of changes.

    Args:
        recursive: whether to change everything below directories too, each directory before its entries.
        is_late: returns whether a directory changes only after everything below it, because the change locks it.
    """
    with out.waiting("changing") as show:
        changes = _Changes(change, Problems(out), show)
        for item in items:
            if recursive and item.status.is_directory:
                changes.tree(item, is_late)
            else:
                changes.one(item)
    out.document({"changed": changes.done, "failed": changes.problems.documents})
    out.say(f"changed {counted(changes.done, 'path')}")
    changes.problems.end(changes.done)


@dataclass
class _Changes:
    """Changes items one after the other, or together; see `change_all`.

    Attributes:
        show: called with a sentence about the progress.
        done: how many were changed.
    """

    change: Callable[[Item], None]
    problems: Problems
    show: Callable[[str], None]
    done: int = 0

    def one(self, item: Item) -> None:
        """Change one file or directory."""
        self._note(item, self._try(item))

    def tree(self, top: Item, is_late: Callable[[FileStatus], bool]) -> None:
        """Change a directory and everything below it. Files change together, directories one by one."""
        late: list[Item] = []

        def files() -> Iterator[Item]:
            """Yield the files; change the directories that lead to them."""
            for item in _all(top, self.problems):
                if not item.status.is_directory:
                    yield item
                elif is_late(item.status):
                    late.append(item)
                else:
                    self.one(item)

        for item, error in ThreadRunner(threads=THREADS).map(lambda item: (item, self._try(item)), files()):
            self._note(item, error)
        for item in reversed(late):
            self.one(item)

    def _try(self, item: Item) -> HoldfastError | None:
        try:
            self.change(item)
        except HoldfastError as error:
            return error
        return None

    def _note(self, item: Item, error: HoldfastError | None) -> None:
        if error is not None:
            self.problems.add(item.url, error)
            return
        self.done += 1
        if self.done % 100 == 0:
            self.show(f"changed {counted(self.done, 'path')}")


def _all(top: Item, problems: Problems) -> Iterator[Item]:
    yield top
    for _, status in descend(top.namespace, top.status.path, failed=problems.below(top.base)):
        yield top.at(status)
