"""Tell from the calls that close a file whether its writer has failed, where nobody says so.

`fsspec.open`, pandas, pyarrow and `contextlib.closing` close their files when a ``with`` block ends, and do not tell
the file whether the block has failed.
"""

from __future__ import annotations

import inspect
import sys
from opcode import opmap
from types import FrameType

_LEAVES_WITH_ERROR = opmap.get("WITH_EXCEPT_START")


def is_closed_by_failure() -> bool:
    """Check, in the `close` of a file, whether a ``with`` block that has failed closes it.

    That is so if an ``__exit__`` that was given an error has called `close`, perhaps through other methods `close`; or
    if a ``with`` statement has, through an ``__exit__`` that is not written in Python. Any other call of `close` means
    what it says, even in an ``except`` or ``finally`` clause: to discard a file there would lose one that is complete.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name == "close":
        frame = frame.f_back
    if frame is None:
        return False
    if frame.f_code.co_name == "__exit__":
        return _is_given_an_error(frame)
    return frame.f_code.co_code[frame.f_lasti] == _LEAVES_WITH_ERROR


def _is_given_an_error(frame: FrameType) -> bool:
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    given = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    return any(
        isinstance(one, BaseException) for value in given for one in (value if isinstance(value, tuple) else (value,))
    )
