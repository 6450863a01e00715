"""Define `Subject`: the store under test, with helpers for checks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from holdfast.conformance import equal
from holdfast.runtime import ThreadRunner
from holdfast.stores.base import MultipartStore, ObjectStore, Part, RenameStore, as_renaming, iter_objects, multipart

T = TypeVar("T")
_RACERS = 8
_TOGETHER_S = 60.0  # for all threads to start


@dataclass(frozen=True, slots=True)
class Subject:
    """A store under test, with helpers that checks call.

    Attributes:
        store: the handle that a check uses.
        other: another handle on the same data, as another process would have; may be the same object.
        prefix: the directory for this check's keys, without a slash at either end; empty at first.
        racers: handles for races, each with its own connections; if empty, `store` and `other` alternate.
        rounds: how often each race is repeated: a server that lets two of several writers win does so only sometimes.
    """

    store: ObjectStore
    other: ObjectStore
    prefix: str
    racers: Sequence[ObjectStore] = ()
    rounds: int = 20

    def race(self, run: Callable[[int, ObjectStore], T]) -> list[T]:
        """Run a function in several threads at the same time, each with its number and a handle; return the results."""
        handles = self.racers or [self.store, self.other] * (_RACERS // 2)
        start = threading.Barrier(len(handles))

        def run_racer(numbered: tuple[int, ObjectStore]) -> T:
            start.wait(_TOGETHER_S)
            return run(*numbered)

        return list(ThreadRunner(len(handles)).map(run_racer, enumerate(handles)))

    def key(self, relative: str) -> str:
        """Return a key below the prefix."""
        return f"{self.prefix}/{relative}"

    def write(self, *relative: str) -> None:
        """Put an object at each of these keys, relative to the prefix; its content is that relative key."""
        for each in relative:
            self.store.put(self.key(each), each.encode())

    def require_exact_contents(self, contents: Mapping[str, str], what: str) -> None:
        """Check that exactly these keys exist below the prefix, with the content that `write` gave them.

        Args:
            contents: maps a relative key to the relative key at which its content was written.
            what: says in errors when the keys are checked, such as "after the rename".
        """
        equal(self.listed(), sorted(contents), f"listing {what}")
        for relative, written in contents.items():
            equal(self.other.get(self.key(relative)), written.encode(), f"content of {relative} {what}")

    @property
    def multipart_store(self) -> MultipartStore:
        """The store as a `MultipartStore`."""
        return multipart(self.store)

    @property
    def rename_store(self) -> RenameStore:
        """The store as a `RenameStore`."""
        return as_renaming(self.store)

    def listed(self, relative: str = "") -> list[str]:
        """List the keys below the prefix, relative to it and sorted, because servers order directories differently."""
        infos = iter_objects(self.store, self.key(relative), markers=True)
        return sorted(info.key[len(self.prefix) + 1 :] for info in infos)

    def part_bytes(self, letter: bytes = b"p") -> bytes:
        """Return the smallest body that a part other than the last may have."""
        limits = self.store.capabilities.multipart
        return letter * (limits.min_part_size_bytes if limits else 1)

    def start_upload_of_one_part(self, relative: str, data: bytes) -> tuple[str, list[Part]]:
        """Create a pending upload of one part; return its id and its parts."""
        upload_id = self.multipart_store.create_upload(self.key(relative))
        return upload_id, [self.multipart_store.upload_part(self.key(relative), upload_id, 1, data)]
