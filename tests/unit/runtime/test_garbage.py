"""Only what the garbage collector calls is told that garbage is being collected."""

from __future__ import annotations

import gc
import sys
from types import FrameType

from holdfast.runtime import ThreadRunner, garbage
from holdfast.runtime.garbage import is_collecting


class _Witness:
    """Notes whether it was finalized in a garbage collection, and whether another thread was told the same."""

    def __init__(self, said: list[bool]) -> None:
        self.said = said
        self.itself: _Witness | None = None

    def __del__(self) -> None:
        self.said.append(is_collecting())
        self.said += ThreadRunner(1).map(lambda _: is_collecting(), [0])


def test_a_finalizer_knows_that_the_collector_calls_it() -> None:
    said: list[bool] = []
    witness = _Witness(said)
    witness.itself = witness
    del witness
    assert (gc.collect() > 0, said, is_collecting()) == (True, [True, False], False)


def test_an_object_whose_last_reference_is_dropped_is_no_garbage() -> None:
    said: list[bool] = []
    witness = _Witness(said)
    del witness
    assert said == [False, False]


def test_no_signal_is_handled_where_its_exception_is_ignored() -> None:
    """Python handles signals when a function starts, and ignores what callbacks of the collector raise."""
    started: list[str] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            started.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        gc.collect()
    finally:
        sys.setprofile(before)
    assert garbage.__file__ not in started
