"""Detect numbers in text files that would change when read as floats.

This is checked before rows are added to files of other writers.

Reads round as Spark does. For existing files, a number has the value that type inference would give it: a whole number
of up to 38 digits is exact, and any other number is a double. A float preserves a number if the float, rounded to as
many digits as the text has, gives the text: this is true of ``0.1``, and of ``2.60872824E14`` from a Java version that
prints one digit too many.
"""

from __future__ import annotations

import decimal
import math
import re
import struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.errors import InvalidRequestError

_EXACT_DIGITS = 38
_WHOLE = re.compile(r"[+-]?0*([0-9]+)\.?", re.ASCII)
_DIGITS_OF_SINGLE = 9  # enough to distinguish any two 32-bit floats
_SURELY_DOUBLE, _SURELY_SINGLE = 15, 7  # all whole numbers with so many digits are exact in a float of 64 or 32 bits


def is_rounded(text: str, number: float, *, single: bool) -> bool:
    """Check whether storing a number in a float column would change the number.

    Args:
        text: the text of the number.
        number: the same number, parsed as a double.
        single: whether the float has 32 bits.
    """
    kept = _as_single(number) if single else number
    whole = _WHOLE.fullmatch(text)
    if whole is not None and len(whole[1]) <= _EXACT_DIGITS:
        return not math.isfinite(kept) or int(kept) != int(text.rstrip("."))
    if kept == number or math.isnan(number):
        return False
    if math.isinf(kept):
        return True
    said = decimal.Decimal(repr(number)).normalize()
    digits = len(said.as_tuple().digits)
    return digits > _DIGITS_OF_SINGLE or decimal.Context(prec=digits).create_decimal_from_float(kept) != said


def _as_single(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def refuse_rounded(texts: Any, doubles: Any, kind: pa.DataType, column: str) -> None:
    """Check that a float type preserves the numbers in a column of strings.

    Args:
        texts: a string array.
        doubles: the same values as doubles.
        kind: a float type.
        column: the name of the column, for the error.

    Raises:
        InvalidRequestError: a number would be rounded; the error contains it.
    """
    single = pat.is_float32(kind)
    surely = pc.match_substring_regex(texts, rf"^[+-]?[0-9]{{1,{_SURELY_SINGLE if single else _SURELY_DOUBLE}}}$")
    others = pc.invert(pc.match_substring_regex(texts, r"^[+-]?[0-9]+\.?$"))
    if single:
        shown = doubles.cast(pa.float32(), safe=False).cast(pa.string())
        others = pc.and_(others, pc.equal(shown, doubles.cast(pa.string())))
    surely = pc.or_(surely, others)
    unsure = pc.invert(pc.fill_null(surely, True))
    for text, number in zip(texts.filter(unsure).to_pylist(), doubles.filter(unsure).to_pylist(), strict=True):
        if is_rounded(text, number, single=single):
            raise InvalidRequestError(
                "the column's type rounds a number: correct the file or use another schema",
                column=column,
                type=str(kind),
                value=text[:80],
            )
