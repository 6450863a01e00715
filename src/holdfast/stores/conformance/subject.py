"""What a check works on, and how it says what it expected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from holdfast.errors import HoldfastError
from holdfast.runtime.runner import ThreadRunner
from holdfast.stores.base import MultipartStore, ObjectStore, Part, RenameStore, iter_objects, multipart, rename

__all__ = ["Check", "ConformanceError", "Subject", "equal", "expect", "refused"]

T = TypeVar("T")
_RACERS = 8
_TOGETHER_S = 60.0  # all have a thread at once, or the machine is stuck


class ConformanceError(AssertionError):
    """A store does not do what its protocol says."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A store under test.

    Attributes:
        store: the handle that a check uses.
        other: another handle on the same data, such as another process would have; may be the same object.
        prefix: where this check's keys go, without a slash at either end; holds nothing yet.
        racers: handles for races, each with connections of its own; none for `store` and `other` in turn.
        rounds: how often a race is run: a server that lets two of many win does so now and then.
    """

    store: ObjectStore
    other: ObjectStore
    prefix: str
    racers: Sequence[ObjectStore] = ()
    rounds: int = 20

    def race(self, run: Callable[[int, ObjectStore], T]) -> list[T]:
        """What many come to who start at the same moment, each with its number and a handle."""
        handles = self.racers or [self.store, self.other] * (_RACERS // 2)
        start = threading.Barrier(len(handles))

        def racer(numbered: tuple[int, ObjectStore]) -> T:
            start.wait(_TOGETHER_S)
            return run(*numbered)

        return list(ThreadRunner(len(handles)).map(racer, enumerate(handles)))

    def key(self, relative: str) -> str:
        """A key below the prefix."""
        return f"{self.prefix}/{relative}"

    def write(self, *relative: str) -> None:
        """Put an object at each of these keys, with its relative key as content."""
        for each in relative:
            self.store.put(self.key(each), each.encode())

    def holds(self, contents: Mapping[str, str], what: str) -> None:
        """Raise unless the keys below the prefix are exactly these, with the content that `write` gave them.

        Args:
            contents: relative key to the relative key at which it was written.
            what: when this should be the case.
        """
        equal(self.listed(), sorted(contents), f"listing {what}")
        for relative, written in contents.items():
            equal(self.other.get(self.key(relative)), written.encode(), f"content of {relative} {what}")

    @property
    def uploads(self) -> MultipartStore:
        """The store as a `MultipartStore`."""
        return multipart(self.store)

    @property
    def files(self) -> RenameStore:
        """The store as a `RenameStore`."""
        return rename(self.store)

    def listed(self, relative: str = "") -> list[str]:
        """The keys below the prefix, relative to it and sorted: servers order directories differently."""
        infos = iter_objects(self.store, self.key(relative), markers=True)
        return sorted(info.key[len(self.prefix) + 1 :] for info in infos)

    def part_bytes(self, letter: bytes = b"p") -> bytes:
        """A body that is just big enough for a part that is not the last."""
        limits = self.store.capabilities.multipart
        return letter * (limits.min_part_size_bytes if limits else 1)

    def uploaded(self, relative: str, data: bytes) -> tuple[str, list[Part]]:
        """A pending upload of one part: its id and parts."""
        upload_id = self.uploads.create_upload(self.key(relative))
        return upload_id, [self.uploads.upload_part(self.key(relative), upload_id, 1, data)]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a store has to do.

    Attributes:
        name: unique, for reports and declared deviations.
        run: raises `ConformanceError`, or whatever the store raises, if the store does not do it.
        needs: the check without which this one is not tried: it would leave what nobody can remove.
    """

    name: str
    run: Callable[[Subject], None]
    needs: str = ""


def expect(condition: bool, what: str) -> None:
    """Raise unless the condition holds; `what` is what should be the case."""
    if not condition:
        raise ConformanceError(what)


def equal(actual: T, expected: T, what: str) -> None:
    """Raise unless both are equal."""
    if actual != expected:
        raise ConformanceError(f"{what}: expected {_short(expected)}, found {_short(actual)}")


def refused(error: type[HoldfastError], call: Callable[[], object], what: str) -> None:
    """Raise unless the call raises this kind of error."""
    try:
        call()
    except error:
        return
    raise ConformanceError(f"{what}: expected {error.__name__}, but the call succeeded")


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 200 else f"{shown[:200]}… ({len(shown)} characters)"
