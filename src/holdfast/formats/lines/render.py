"""Render columns as text for CSV and JSON, in a form that Spark's readers parse, without a Python loop over rows."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from holdfast.formats.columns.nesting import is_string
from holdfast.formats.spark.texts import DAY_MICROS, date_text, time_text


def scalar_text(values: Any) -> Any:
    """Return a string array with the unquoted text of each value; null stays null.

    Dates and timestamps use ISO 8601, with a sign for years past 9999; timestamps with a zone are in UTC and end in
    ``Z``. Floats have the fewest digits that identify them; ``NaN`` and ``Infinity`` are spelled as in Java.
    """
    kind = values.type
    if is_string(kind):
        return values.cast(pa.string())
    if pat.is_timestamp(kind):
        text = _far_text(values.cast(pa.timestamp("us")), DAY_MICROS)
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
        return _append(text, "Z") if kind.tz is not None else text
    if pat.is_date32(kind):
        return _far_text(values, 1)
    text = values.cast(pa.string())
    if pat.is_floating(kind):
        return _java_words(text, values)
    return text


_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896  # 0000-01-01 and 9999-12-31: outside this range pyarrow prints no year


def _far_text(values: Any, day: int) -> Any:
    """Return dates or timestamps as text; a year that does not have exactly four digits gets a sign, as in Java.

    Args:
        values: the dates or timestamps.
        day: the length of a day in the unit of the values (days or microseconds).
    """
    text = values.cast(pa.string())
    numbers = values.cast(pa.int32() if day == 1 else pa.int64())
    far = pc.or_(pc.less(numbers, _FIRST_DAY * day), pc.greater_equal(numbers, (_LAST_DAY + 1) * day))
    if not pc.any(far).as_py():
        return text
    shown = [date_text(number) if day == 1 else time_text(number) for number in numbers.filter(far).to_pylist()]
    return pc.replace_with_mask(text, pc.fill_null(far, False), pa.array(shown, pa.string()))


def _append(text: Any, suffix: str) -> Any:
    return pc.binary_join_element_wise(text, suffix, "")


def _java_words(text: Any, values: Any) -> Any:
    text = pc.if_else(pc.equal(text, "-0"), "-0.0", text)  # a JSON parser reads -0 as an integer and drops the sign
    if pc.all(pc.is_finite(values)).as_py() in (True, None):
        return text
    text = pc.if_else(pc.is_nan(values), "NaN", text)
    infinite = pc.is_inf(values)
    return pc.if_else(infinite, pc.if_else(pc.less(values, 0), "-Infinity", "Infinity"), text)


def _base64_text(values: Any) -> Any:
    """Return binary values as base64, as Spark writes them in JSON."""
    encoded = [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()]
    return pa.array(encoded, pa.string())


# --- JSON -------------------------------------------------------------------------------------------------------------
_JSON_SPECIAL = r'["\\\x00-\x1f\x7f]'
_JSON_SHORT = {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r"}


def _json_string(text: Any) -> Any:
    """Return the strings in quotes, and escape the characters that JSON does not allow in strings."""
    if pc.any(pc.match_substring_regex(text, _JSON_SPECIAL)).as_py():
        text = pc.replace_substring(text, "\\", "\\\\")
        text = pc.replace_substring(text, '"', '\\"')
        for code in (*range(0x20), 0x7F):
            character = chr(code)
            if pc.any(pc.match_substring(text, character)).as_py():
                text = pc.replace_substring(text, character, _JSON_SHORT.get(character, f"\\u{code:04x}"))
    return pc.binary_join_element_wise('"', text, '"', "")


def _json_cells(values: Any, ignore_null_fields: bool) -> Any:
    """Return a string array with the JSON of each value; null stays null."""
    kind = values.type
    if pat.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if pat.is_boolean(kind) or pat.is_integer(kind) or pat.is_decimal(kind):
        return values.cast(pa.string())
    if pat.is_floating(kind):
        text = scalar_text(values)
        finite = pc.is_finite(values)
        return text if pc.all(finite).as_py() in (True, None) else pc.if_else(finite, text, _json_string(text))
    if pat.is_struct(kind):
        return _json_objects(values, ignore_null_fields)
    if pat.is_map(kind):
        return _json_maps(values, ignore_null_fields)
    if pat.is_nested(kind):
        elements = pc.fill_null(_json_cells(values.flatten(), ignore_null_fields), "null")
        return _join_lists(values, elements, "[", "]")
    return _json_string(_json_text(values))


def _json_text(values: Any) -> Any:
    kind = values.type
    return _base64_text(values) if pat.is_binary(kind) or pat.is_large_binary(kind) else scalar_text(values)


def _json_objects(values: Any, ignore_null_fields: bool) -> Any:
    fields = [
        json_field(field.name, child, ignore_null_fields)
        for field, child in zip(values.type, values.flatten(), strict=True)
    ]
    return _restore_nulls(values, join_object(fields, len(values), "{", "}"))


def json_field(name: str, values: Any, ignore_null_fields: bool) -> Any:
    """Return ``,"name":value`` for each value, or an empty string for null if null fields are omitted."""
    cells = _json_cells(values, ignore_null_fields)
    if not ignore_null_fields:
        cells = pc.fill_null(cells, "null")
    label = _json_string(pa.array([name], pa.string()))[0].as_py()
    return pc.fill_null(pc.binary_join_element_wise(f",{label}:", cells, ""), "")


def join_object(fields: list[Any], rows: int, opening: str, closing: str) -> Any:
    """Join the results of `json_field` for all fields into one object per row."""
    if not fields:
        return pa.array([opening + closing] * rows, pa.string())
    # Do not use the join option that skips nulls: it drops rows in which all values are null (pyarrow 26).
    inner = pc.binary_replace_slice(pc.binary_join_element_wise(*fields, ""), 0, 1, "")
    return pc.binary_join_element_wise(opening, inner, closing, "")


def _json_maps(values: Any, ignore_null_fields: bool) -> Any:
    kind = values.type
    entry = pa.struct([pa.field("key", kind.key_type, False), pa.field("value", kind.item_type)])
    entries = values.cast(pa.list_(entry))
    keys, items = entries.flatten().flatten()
    # Every key is a string in JSON. Null values in maps are written even if null fields are omitted, because the key
    # would be lost with them.
    labels = _json_string(_json_text(keys))
    cells = pc.fill_null(_json_cells(items, ignore_null_fields), "null")
    return _join_lists(entries, pc.binary_join_element_wise(labels, cells, ":"), "{", "}")


def _join_lists(values: Any, elements: Any, opening: str, closing: str) -> Any:
    """Return one string per list; `elements` contains the rendered elements of all lists that are not null."""
    lengths = pc.fill_null(pc.list_value_length(values), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    lists = pa.ListArray.from_arrays(offsets, elements)
    joined = pc.binary_join_element_wise(opening, pc.binary_join(lists, ","), closing, "")
    return _restore_nulls(values, joined)


def _restore_nulls(values: Any, text: Any) -> Any:
    return text if values.null_count == 0 else pc.if_else(pc.is_valid(values), text, pa.scalar(None, pa.string()))


def text_bytes(lines: Any) -> Any:
    """Return the concatenated bytes of a string array without nulls, without copying them."""
    if len(lines) == 0:
        return b""
    _, offsets, data = lines.buffers()
    bounds = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    start, end = bounds[0].as_py(), bounds[-1].as_py()
    return b"" if data is None or start == end else data.slice(start, end - start)
