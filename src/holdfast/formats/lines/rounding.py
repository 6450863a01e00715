"""Whether numbers in texts become other ones as floats, before rows of floats join files that others wrote.

Readers round as Spark does. What the numbers of a file were read as before is what inference says: a whole number is
exact, whatever its length up to 38 digits; any other is a double. A float is such a number too if the text gives its
value as far as it goes, as ``0.1`` does, or ``2.60872824E14`` of a Java that shows a digit more than needed.
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

__all__ = ["is_rounded", "refuse_rounded"]

_EXACT_DIGITS = 38
_WHOLE = re.compile(r"[+-]?0*([0-9]+)\.?", re.ASCII)
_DIGITS_OF_SINGLE = 9  # tell any of them from the others
_SURELY_DOUBLE, _SURELY_SINGLE = 15, 7  # digits of whole numbers that all are floats


def is_rounded(text: str, number: float, *, single: bool) -> bool:
    """Whether a float is not what the text of a number was taken for.

    Args:
        text: of the number.
        number: the double that it is read as.
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
    """See that a column of texts keeps its numbers in a type.

    Args:
        texts: a string array.
        doubles: the texts as doubles.
        kind: a type of floats.
        column: for the error.

    Raises:
        InvalidRequestError: a number is rounded; says which.
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
                "a number that the column's type rounds: correct the file or give another schema",
                column=column,
                type=str(kind),
                value=text[:80],
            )
