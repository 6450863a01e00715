"""Record what concurrent workers did, so that threads and processes can be judged alike."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from holdfast_checker.histories.history import Operation, Outcome

__all__ = ["Told", "often_switched", "operations_of"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a worker tells about one operation; all of it can become JSON.

    Attributes:
        steps: what it did, in order.
        saw: what its reads returned, in order.
        began_s, ended_s: when it began and ended, on a clock that all workers of a machine share.
        took_effect: False if it conflicted.
    """

    who: str
    steps: tuple[tuple[Any, ...], ...]
    saw: tuple[Any, ...]
    began_s: float
    ended_s: float
    took_effect: bool = True

    def encode(self) -> str:
        return json.dumps([self.who, self.steps, self.saw, self.began_s, self.ended_s, self.took_effect])

    @staticmethod
    def decode(line: str) -> Told:
        who, steps, saw, began_s, ended_s, took_effect = json.loads(line)
        return Told(who, _tuples(steps), _tuples(saw), began_s, ended_s, took_effect)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def operations_of(told: Sequence[Told], fields: Callable[[Told], Mapping[str, Any]]) -> list[Operation]:
    """Return what was told as operations of a history, in the order in which they began.

    Args:
        fields: returns the fields of an operation that say what it did: see `Operation`.
    """
    moments = sorted({moment for one in told for moment in (one.began_s, one.ended_s)})
    position = {moment: number for number, moment in enumerate(moments)}
    return [
        Operation(
            who=one.who,
            invoked=position[one.began_s],
            ended=position[one.ended_s],
            outcome=Outcome.OK if one.took_effect else Outcome.FAILED,
            **fields(one),
        )
        for one in sorted(told, key=lambda one: (one.began_s, one.who))
    ]


@contextmanager
def often_switched() -> Iterator[None]:
    """Let the interpreter switch between threads after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
