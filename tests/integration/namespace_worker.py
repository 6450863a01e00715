"""Work in one directory of a namespace while its database is killed, and compare every state with a model.

Usage: ``python -m tests.integration.namespace_worker URL DIRECTORY SEED STOP-FILE REPORT-FILE``. The worker runs until
the stop file exists, then writes a report: a JSON object with the number of operations of each outcome, and the files
that must exist, with their contents. An operation that was acknowledged must be visible at once and later; one of
unknown outcome may be there or not, but not in part. If something else is true, the worker dies with an error.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdfast.errors import OutcomeUnknownError, UnavailableError
from holdfast.namespace import Namespace, open_namespace
from holdfast.runtime import SeededRandom, SystemClock

_BIG = 100_000
_PATIENCE_S = 240.0

T = TypeVar("T")

State = dict[str, str]
"""The first characters of the content of each file, by path."""


class Worker:
    """One client with a model of its own directory."""

    def __init__(self, namespace: Namespace, directory: str, seed: int) -> None:
        self.namespace = namespace
        self.directory = directory
        self.chance = SeededRandom(seed)
        self.clock = SystemClock()
        self.state: State = {}
        self.outcomes: Counter[str] = Counter()
        self.number = 0

    def step(self) -> None:
        """Do one operation, and take over its outcome."""
        self.number += 1
        after = dict(self.state)
        files = sorted(self.state)
        choice = self.chance.pick(["create", "create", "overwrite", "rename", "move", "delete"])
        target = f"{self.directory}/{'ab'[self.number % 2]}/f{self.number}"
        text = f"{self.number}-"
        try:
            if choice == "create" or not files:
                choice = "create"
                after[target] = text
                self._write(target, text)
            elif choice == "overwrite":
                target = self.chance.pick(files)
                after[target] = text
                self._write(target, text, overwrite=True)
            elif choice == "rename":
                source = self.chance.pick(files)
                after[target] = after.pop(source)
                self.namespace.mkdirs(target.rpartition("/")[0])
                self.namespace.rename(source, target)
            elif choice == "move":
                # The whole tree moves away, and back: two transactions, of which the second may never happen.
                self._move_tree()
                return
            else:
                source = self.chance.pick(files)
                del after[source]
                self.namespace.delete(source)
        except UnavailableError:
            self.outcomes["unavailable"] += 1
            self._settle([self.state])
        except OutcomeUnknownError:
            self.outcomes["unknown"] += 1
            self._settle([self.state, after])
        else:
            self.outcomes[choice] += 1
            self.state = after
            if self.number % 20 == 0:
                self._settle([self.state])

    def _write(self, path: str, text: str, *, overwrite: bool = False) -> None:
        data = text.encode()
        self.namespace.write_file(path, data.ljust(_BIG if self.number % 5 == 0 else 100), overwrite=overwrite)

    def _move_tree(self) -> None:
        for source, target in (
            (self.directory, f"{self.directory}-moved"),
            (f"{self.directory}-moved", self.directory),
        ):
            while not self._is_moved(source, target):
                try:
                    self.namespace.rename(source, target)
                    self.outcomes["move"] += 1
                except (UnavailableError, OutcomeUnknownError):
                    self.outcomes["unknown"] += 1

    def _is_moved(self, source: str, target: str) -> bool:
        here, there = self._patiently(lambda: (self.namespace.exists(source), self.namespace.exists(target)))
        assert here != there, f"the tree is at {source}: {here}, at {target}: {there}"
        return there

    def _settle(self, possible: list[State]) -> None:
        """Read the directory, and check that it is in one of the possible states."""
        found = self._patiently(self._read)
        assert found in possible, f"{self.directory}: found {found}, expected one of {possible}"
        self.state = found

    def _read(self) -> State:
        files = [entry.path for entry in self.namespace.walk(self.directory) if not entry.is_directory]
        return {path: self.namespace.open(path).read().decode().partition("-")[0] + "-" for path in files}

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


def main(url: str, directory: str, seed: str, stop: str, report: str) -> None:
    """Run the worker."""
    with open_namespace(url) as namespace:
        worker = Worker(namespace, directory, int(seed))
        namespace.mkdirs(f"{directory}/a")
        namespace.mkdirs(f"{directory}/b")
        Path(f"{report}.ready").touch()
        while not Path(stop).exists():
            worker.step()
        worker._settle([worker.state])
    Path(report).write_text(json.dumps({"outcomes": worker.outcomes, "files": worker.state}))


if __name__ == "__main__":
    main(*sys.argv[1:])
