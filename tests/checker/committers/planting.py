"""Plant mistakes: functions that run in place of shipped ones.

A mistake is a function that takes the shipped function first, and then what the shipped function takes. It may call
the shipped one, with other arguments or between other calls. `swap` pairs the two, and the type checker compares their
signatures. The mistake is planted in the function object itself: every caller runs it, whatever name or value holds
the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

__all__ = ["Swap", "planted", "swap"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Swap:
    """A shipped function, and the one that runs in its place."""

    shipped: FunctionType
    mistake: Callable[..., object]


def swap(shipped: Callable[P, R], mistake: Callable[Concatenate[Callable[P, R], P], R]) -> Swap:
    """Pair a shipped function with the mistake that replaces it.

    Args:
        mistake: takes the shipped function, then the same parameters with the same names and defaults.

    Raises:
        AssertionError: the parameters differ.
    """
    wanted = _parameters(shipped)
    found = _parameters(mistake)[1:]
    assert found == wanted, f"{shipped.__qualname__} takes {wanted}, its mistake {found}"
    return Swap(cast("FunctionType", shipped), mistake)


def _parameters(function: Callable[..., object]) -> list[str]:
    """List parameters with their kinds and defaults, without their types."""
    parameters = inspect.signature(function).parameters.values()
    return [f"{one.kind.description} {one.replace(annotation=one.empty)}" for one in parameters]


@contextmanager
def planted(*swaps: Swap) -> Iterator[None]:
    """Run mistakes in place of the shipped functions."""
    with ExitStack() as stack:
        for one in swaps:
            shipped = one.shipped
            code = _code_that_calls(partial(one.mistake, _copy(shipped)))
            stack.callback(setattr, shipped, "__code__", shipped.__code__)
            shipped.__code__ = code
        yield


def _copy(function: FunctionType) -> FunctionType:
    found = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    found.__kwdefaults__ = function.__kwdefaults__
    return found


def _code_that_calls(callee: Callable[..., object]) -> CodeType:
    """Return code for any function: it passes its arguments on to `callee`, which is one of its constants."""

    def call(*args: Any, **options: Any) -> object:
        found: Any = "callee"
        return found(*args, **options)

    code = call.__code__
    return code.replace(co_consts=tuple(callee if one == "callee" else one for one in code.co_consts))
