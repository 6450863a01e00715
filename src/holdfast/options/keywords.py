"""Convert the keywords and options of a Python call into the options that Spark and the parsers take.

A keyword that is left out sets no option, even if the keyword has a default. A value that is given twice, for example
as a keyword and as an option, must be the same both times: `GivenOptions` checks this.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence

from holdfast.errors import InvalidRequestError
from holdfast.options.values import encode_conditions
from holdfast.stores.provider import GivenOption
from holdfast.stores.registry import LOST_SLASH, absolute_url
from holdfast.wording import suggest_nearest

_MODES: Mapping[str, str] = {
    **{mode: mode for mode in ("append", "overwrite", "overwrite-partitions", "fail", "ignore")},
    "error": "fail",
    "errorifexists": "fail",
}
_PATHS = frozenset({"path", "scratchdir", "shareddir", "reportdir"})


# --- keywords ---------------------------------------------------------------------------------------------------------
def option_from_text(name: str, value: object, keyword: str) -> list[GivenOption]:
    """Convert a keyword's string to the option `name`; None sets no option.

    Raises:
        InvalidRequestError: the value is not a string.
    """
    if value is None:
        return []
    if not isinstance(value, str):
        raise InvalidRequestError("expected a string: write one", option=keyword, type=type(value).__name__)
    return [GivenOption.of(name, str.__str__(value), keyword)]


def option_from_url(url: object, keyword: str = "url") -> list[GivenOption]:
    """Convert a destination, a string or a local path object, to the option ``path``.

    Raises:
        InvalidRequestError: `url` is neither.
    """
    if isinstance(url, os.PathLike):
        text = os.fspath(url)
        if not isinstance(text, str) or LOST_SLASH.match(text):
            raise InvalidRequestError("a path object cannot hold a URL: pass the URL as a string", url=text)
        return option_from_text("path", text, keyword)
    if url is None:
        raise InvalidRequestError("no destination was given: pass a URL or a path", option=keyword)
    return option_from_text("path", url, keyword)


def parse_save_mode(mode: object) -> str:
    """Convert a mode, or one of Spark's other words for it, to the value of a `SaveMode`.

    Raises:
        InvalidRequestError: the mode is unknown.
    """
    word = mode.strip().lower().replace("_", "-") if isinstance(mode, str) else ""
    if word not in _MODES:
        raise InvalidRequestError(f"no such mode: {suggest_nearest(str(mode), _MODES)}", mode=mode)
    return _MODES[word]


def options_from_mode(mode: object, keyword: str = "mode") -> tuple[bool, list[GivenOption]]:
    """Convert a mode into Spark's overwrite flag and the option that refines the flag; None means append.

    Raises:
        InvalidRequestError: the mode is unknown.
    """
    if mode is None:
        return False, []
    found = parse_save_mode(mode)
    if found == "overwrite":
        return True, []
    if found == "overwrite-partitions":
        return True, option_from_text("partitionOverwriteMode", "dynamic", keyword)
    return False, option_from_text("ifExists", found, keyword)


def option_from_columns(name: str, value: object, keyword: str) -> list[GivenOption]:
    """Build an option from one column name or several; None and an empty list set no option.

    Raises:
        InvalidRequestError: see `column_names`.
    """
    if value is None:
        return []
    names = column_names(value, keyword)
    return [GivenOption.of(name, join_columns(names), keyword)] if names else []


def option_from_conditions(name: str, value: object, keyword: str) -> list[GivenOption]:
    """Build the option ``filters`` from a list of conditions (column, operator, value), or from its text.

    Raises:
        InvalidRequestError: the value is neither.
    """
    if isinstance(value, str):
        return option_from_text(name, value, keyword)
    if value is None:
        return []
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes | bytearray):
        raise InvalidRequestError('not a list of conditions: write [("month", "=", 1)]', option=keyword)
    text = encode_conditions(tuple(value))
    return [] if text == "[]" else [GivenOption.of(name, text, keyword)]


def column_names(value: object, keyword: str) -> tuple[str, ...]:
    """Return the column names in a keyword's value, which is one name or a sequence of names.

    Raises:
        InvalidRequestError: the value contains something other than names, or has no order.
    """
    if isinstance(value, str):
        return (value,)
    ordered = isinstance(value, Sequence) and not isinstance(value, bytes | bytearray)
    names: tuple[object, ...] = tuple(value) if isinstance(value, Sequence) and ordered else (None,)
    found = tuple(name for name in names if isinstance(name, str) and name)
    if len(found) != len(names):
        raise InvalidRequestError(
            "columns are given by name: pass a string, or a list of strings",
            option=keyword,
            type=type(value).__name__,
        )
    return found


def join_columns(names: Sequence[str]) -> str:
    """Quote and join column names as the options ``partitionBy`` and ``columns`` take them."""
    return ",".join("`" + name.replace("`", "``") + "`" for name in names)


# --- options ----------------------------------------------------------------------------------------------------------
def options_from_values(options: Mapping[str, object]) -> list[GivenOption]:
    """Build options from Python values: True becomes ``true``, and None sets no option. Names match in any case.

    Raises:
        InvalidRequestError: a value has no string form. The error does not show the value: it may be a secret.
    """
    given: list[GivenOption] = []
    for spelled, value in options.items():
        one = GivenOption.of(spelled, "", spelled)
        if one.name in ("partitionby", "columns") and not isinstance(value, str):
            given += option_from_columns(spelled, value, spelled)
        elif one.name == "filters":
            given += option_from_conditions(spelled, value, spelled)
        elif value is not None:
            given.append(GivenOption.of(spelled, _option_text(value, spelled), spelled))
    return given


def _option_text(value: object, spelled: str) -> str:
    if isinstance(value, str):
        return str.__str__(value)  # for an Enum that is a str, its value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, os.PathLike) and isinstance(path := os.fspath(value), str):
        return path
    try:
        return str(operator.index(value))  # type: ignore[arg-type]  # raises for anything but a whole number
    except TypeError:
        raise InvalidRequestError(
            "options are strings, whole numbers or booleans: pass one of those, and check the option's name",
            option=spelled,
            type=type(value).__name__,
        ) from None


def make_option_paths_absolute(given: Iterable[GivenOption]) -> list[GivenOption]:
    """Make paths absolute: Spark's processes keep the working directory in which they started.

    Raises:
        InvalidRequestError: a path is relative to a directory that no longer exists.
    """
    return [one._replace(text=absolute_url(one.text)) if one.name in _PATHS else one for one in given]


def as_spark_options(given: Iterable[GivenOption]) -> dict[str, str]:
    """Return options as strings for Spark. Parse the options first, because parsing refuses contradictory ones."""
    return {one.name: one.text for one in given}
