"""Work in one directory of a namespace while its database, or the worker, is killed; compare every state with a model.

Usage: ``python -m tests.integration.namespace_worker URL DIRECTORY SEED STOP-FILE REPORT-FILE [MODE]``. The worker runs
until the stop file exists and each kind of operation has succeeded at least once, then writes a report: a JSON object
with the number of operations of each outcome, and the files that must exist, with their contents. An operation that was
acknowledged must be visible at once and later; one of unknown outcome may be there or not, but not in part. If
something else is true, the worker dies with an error.

Before and after each operation, the worker writes the states that are possible to a journal beside the report. A worker
that takes the place of one that was killed begins with them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.namespace import Namespace, open_namespace
from holdfast.runtime import SeededRandom, SystemClock

_BIG = 100_000
_PATIENCE_S = 240.0
_KINDS = ("create", "create", "overwrite", "append", "rename", "move", "delete")

T = TypeVar("T")

State = dict[str, str]
"""The content of each file without its spaces, by path."""


class Worker:
    """One client with a model of its own directory."""

    def __init__(self, namespace: Namespace, directory: str, seed: int, journal: Path) -> None:
        self.namespace = namespace
        self.directory = directory
        self.clock = SystemClock()
        self.state: State = {}
        self.outcomes: Counter[str] = Counter()
        self.number = 0
        self.journal = journal.open("a", buffering=1)
        lines = journal.read_text().splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):  # a kill cuts a write at a border of pages; no operation followed it
            self.journal.truncate(sum(map(len, lines[:-1])))
            lines.pop()
        self._take_over(lines)
        self.chance = SeededRandom(seed * 1_000_003 + self.number)

    def _take_over(self, lines: list[str]) -> None:
        """Begin where a killed worker ended: its last operation has happened, or not."""
        if lines:
            last = json.loads(lines[-1])
            self.number, self.outcomes = last["number"], Counter(last["outcomes"])
            self._move(f"{self.directory}-moved", self.directory)
            self._settle(last["possible"])
        else:
            for name in "ab":
                self.namespace.mkdirs(f"{self.directory}/{name}")

    def _note(self, *possible: State) -> None:
        line = {"number": self.number, "outcomes": self.outcomes, "possible": possible}
        self.journal.write(json.dumps(line) + "\n")

    def step(self) -> None:
        """Do one operation, and take over its outcome."""
        self.number += 1
        after = dict(self.state)
        files = sorted(self.state)
        choice = self.chance.pick(_KINDS)
        target = f"{self.directory}/{'ab'[self.number % 2]}/f{self.number}"
        text = f"{self.number}-"
        if not files:
            choice = "create"
        path = self.chance.pick(files) if files else ""
        act: Callable[[], object]
        if choice == "create":
            after[target] = text
            act = partial(self._write, target, text)
        elif choice == "overwrite":
            after[path] = text
            act = partial(self._write, path, text, overwrite=True)
        elif choice == "append":
            after[path] += text
            act = partial(self._append, path, text)
        elif choice == "rename":
            after[target] = after.pop(path)
            act = partial(self.namespace.rename, path, target)
        elif choice == "delete":
            del after[path]
            act = partial(self.namespace.delete, path)
        else:
            # The whole tree moves away, and back: two transactions, of which the second may never happen.
            act = self._move_away_and_back
        self._note(self.state, after)
        try:
            act()
        except UnavailableError:
            self.outcomes["unavailable"] += 1
            # An append takes two transactions; the first one may have happened.
            self._settle([self.state])
        except OutcomeUnknownError:
            self.outcomes["unknown"] += 1
            self._settle([self.state, after])
        else:
            self.outcomes[choice] += 1
            self.state = after
            self._note(after)
            if self.number % 20 == 0:
                self._settle([self.state])

    def _write(self, path: str, text: str, *, overwrite: bool = False) -> None:
        data = text.encode()
        self.namespace.write_file(path, data.ljust(_BIG if self.number % 5 == 0 else 100), overwrite=overwrite)

    def _append(self, path: str, text: str) -> None:
        with self.namespace.append(path) as file:
            file.write(text.encode().ljust(100))

    def _move_away_and_back(self) -> None:
        away = f"{self.directory}-moved"
        self._move(self.directory, away)
        self._move(away, self.directory)

    def _move(self, source: str, target: str) -> None:
        while not self._is_moved(source, target):
            try:
                self.namespace.rename(source, target)
            except (UnavailableError, OutcomeUnknownError):
                self.outcomes["unknown"] += 1

    def _is_moved(self, source: str, target: str) -> bool:
        here, there = self._patiently(lambda: (self.namespace.exists(source), self.namespace.exists(target)))
        assert here != there, f"the tree is at {source}: {here}, at {target}: {there}"
        return there

    def _settle(self, possible: list[State]) -> None:
        """Read the directory, and check that it is in one of the possible states."""
        self._patiently(self._recover_leases)
        found = self._patiently(self._read)
        assert found in possible, f"{self.directory}: found {found}, expected one of {possible}"
        self.state = found
        self._note(found)

    def _recover_leases(self) -> None:
        """End the append of a worker that was killed, or that could not reach the database."""
        for entry in list(self.namespace.walk(self.directory)):
            if entry.is_open:
                self.namespace.recover_lease(entry.path)

    def _read(self) -> State:
        files = [entry.path for entry in self.namespace.walk(self.directory) if not entry.is_directory]
        return {path: self.namespace.open(path).read().decode().replace(" ", "") for path in files}

    def _patiently(self, read: Callable[[], T]) -> T:
        """Read, and wait for the database if it is away."""
        deadline_s = self.clock.elapsed_s() + _PATIENCE_S
        while True:
            try:
                return read()
            except UnavailableError:
                if self.clock.elapsed_s() > deadline_s:
                    raise
                self.clock.sleep(0.05)


def main(url: str, directory: str, seed: str, stop: str, report: str, locks: str = "") -> None:
    """Run the worker."""
    with open_namespace(url) as namespace:
        if locks:
            namespace.operations.tries_without_locks = 0
        worker = Worker(namespace, directory, int(seed), Path(f"{report}.journal"))
        Path(f"{report}.ready").touch()
        while not (Path(stop).exists() and all(worker.outcomes[kind] for kind in _KINDS)):
            worker.step()
        worker._settle([worker.state])
    worker.journal.close()
    Path(report).write_text(json.dumps({"outcomes": worker.outcomes, "files": worker.state}))


if __name__ == "__main__":
    main(*sys.argv[1:])
