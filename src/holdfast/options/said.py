"""What a Python call says about a read, write or job: keywords and options, under whatever names, as option strings.

A keyword that is left out says nothing, whatever its default; what is said twice must be the same both times, which
`Given` sees to once the values are parsed.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.errors import InvalidRequestError
from holdfast.options.conditions import conditions_text
from holdfast.options.values import Saying
from holdfast.stores.url import LOST_SLASH, absolute_url
from holdfast.wording import nearest

__all__ = [
    "column_names",
    "flag",
    "joined_columns",
    "rooted",
    "say",
    "say_columns",
    "say_conditions",
    "say_mode",
    "say_options",
    "say_url",
    "settled",
]

# What a call's mode says: whether Spark's own mode is overwrite, and the option that says the rest.
_MODES: Mapping[str, tuple[bool, str, str]] = {
    "append": (False, "ifExists", "append"),
    "overwrite": (True, "", ""),
    "overwrite-partitions": (True, "partitionOverwriteMode", "dynamic"),
    "fail": (False, "ifExists", "fail"),
    "error": (False, "ifExists", "fail"),
    "errorifexists": (False, "ifExists", "fail"),
    "ignore": (False, "ifExists", "ignore"),
}
_PLACES = frozenset({"path", "scratchdir", "shareddir", "reportdir"})


# --- keywords ---------------------------------------------------------------------------------------------------------
def say(name: str, value: object, keyword: str) -> list[Saying]:
    """An option by its keyword; None says nothing.

    Raises:
        InvalidRequestError: the value is no text.
    """
    if value is None:
        return []
    if not isinstance(value, str):
        raise InvalidRequestError("this is no text: write a string", option=keyword, type=type(value).__name__)
    return [Saying.of(name, str.__str__(value), keyword)]


def say_url(url: object, keyword: str = "url") -> list[Saying]:
    """The destination, text or a path of this machine.

    Raises:
        InvalidRequestError: it is neither.
    """
    if isinstance(url, os.PathLike):
        text = os.fspath(url)
        if not isinstance(text, str) or LOST_SLASH.match(text):
            raise InvalidRequestError("a path object cannot hold a url: give the url as a string", url=text)
        return say("path", text, keyword)
    if url is None:
        raise InvalidRequestError("no destination was given: give a url or a path", option=keyword)
    return say("path", url, keyword)


def say_mode(mode: object, keyword: str = "mode") -> tuple[bool, list[Saying]]:
    """Whether a write replaces what is there, and the option that says the rest; None says nothing.

    Raises:
        InvalidRequestError: there is no such mode.
    """
    if mode is None:
        return False, []
    word = mode.strip().lower().replace("_", "-") if isinstance(mode, str) else ""
    if word not in _MODES:
        raise InvalidRequestError(f"no such mode: {nearest(str(mode), _MODES)}", mode=mode)
    overwrite, name, value = _MODES[word]
    return overwrite, say(name, value, keyword) if name else []


def say_columns(name: str, value: object, keyword: str) -> list[Saying]:
    """Columns by a keyword: one name, or several; None says nothing.

    Raises:
        InvalidRequestError: see `column_names`.
    """
    if value is None:
        return []
    names = column_names(value, keyword)
    return [Saying.of(name, joined_columns(names), keyword)] if names else []


def say_conditions(name: str, value: object, keyword: str) -> list[Saying]:
    """Conditions in Python values, or the text that the option ``filters`` takes; nothing if there are none.

    Raises:
        InvalidRequestError: it is neither.
    """
    if isinstance(value, str):
        return say(name, value, keyword)
    if value is None:
        return []
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes | bytearray):
        raise InvalidRequestError('not a list of conditions: write [("month", "=", 1)]', option=keyword)
    text = conditions_text(tuple(value))
    return [] if text == "[]" else [Saying.of(name, text, keyword)]


def column_names(value: object, keyword: str) -> tuple[str, ...]:
    """One column's name, or several in their order.

    Raises:
        InvalidRequestError: something else than names, or names without an order.
    """
    if isinstance(value, str):
        return (value,)
    ordered = isinstance(value, Sequence) and not isinstance(value, bytes | bytearray)
    names: tuple[object, ...] = tuple(value) if isinstance(value, Sequence) and ordered else (None,)
    found = tuple(name for name in names if isinstance(name, str) and name)
    if len(found) != len(names):
        raise InvalidRequestError(
            "columns are given by name: write a string, or a list of strings",
            option=keyword,
            type=type(value).__name__,
        )
    return found


def joined_columns(names: Sequence[str]) -> str:
    """Column names as the options ``partitionBy`` and ``columns`` take them, whatever the names hold."""
    return ",".join("`" + name.replace("`", "``") + "`" for name in names)


def flag(value: object, keyword: str) -> bool:
    """A keyword that is True or False; ``"false"`` and 0 would be taken for their opposite or by chance.

    Raises:
        InvalidRequestError: it is neither.
    """
    if not isinstance(value, bool):
        raise InvalidRequestError("this is neither True nor False: write one of them", option=keyword, value=value)
    return value


# --- options ----------------------------------------------------------------------------------------------------------
def say_options(options: Mapping[str, object]) -> list[Saying]:
    """Options in Python values, names in any case or in snake case: True is ``true``, None says nothing.

    Raises:
        InvalidRequestError: a value has no option string. Its text is not shown: it may be a secret.
    """
    said: list[Saying] = []
    for spelled, value in options.items():
        one = Saying.of(spelled, "", spelled)
        if one.name in ("partitionby", "columns") and not isinstance(value, str):
            said += say_columns(spelled, value, spelled)
        elif one.name == "filters":
            said += say_conditions(spelled, value, spelled)
        elif value is not None:
            said.append(Saying.of(spelled, _option_text(value, spelled), spelled))
    return said


def _option_text(value: object, spelled: str) -> str:
    if isinstance(value, str):
        return str.__str__(value)  # of an Enum that is a str, too, its value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, os.PathLike) and isinstance(path := os.fspath(value), str):
        return path
    try:
        return str(operator.index(value))  # type: ignore[arg-type]  # what is no whole number raises
    except TypeError:
        raise InvalidRequestError(
            "options are strings, whole numbers or booleans: write one of those, and check the option's name",
            option=spelled,
            type=type(value).__name__,
        ) from None


def rooted(said: Iterable[Saying]) -> list[Saying]:
    """The same with absolute paths: Spark's processes work in the directories in which they started, not in this one.

    Raises:
        InvalidRequestError: a path is relative to a directory that is gone.
    """
    return [replace(one, text=absolute_url(one.text)) if one.name in _PLACES else one for one in said]


def settled(said: Iterable[Saying]) -> dict[str, str]:
    """What was said, as options for Spark; after parsing, which refuses what was said twice and differently."""
    options: dict[str, str] = {}
    for one in said:
        options.setdefault(one.name, one.text)
    return options
