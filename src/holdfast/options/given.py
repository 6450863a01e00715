"""Collect the options of a call and pass each of them to its parser."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.formats import FORMATS
from holdfast.stores.registry import invalid_value
from holdfast.wording import nearest

__all__ = ["GivenOption", "GivenOptions", "OptionSource", "refuse_unknown"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GivenOption:
    """One option that the caller set.

    Attributes:
        name: the option's name in lower case, without underscores.
        text: the option's value; not part of the repr, since it may be a secret.
        spelled: the name as the caller wrote it; for a keyword argument, the keyword.
    """

    name: str
    text: str = field(repr=False)
    spelled: str

    @classmethod
    def of(cls, name: str, text: str, spelled: str) -> GivenOption:
        """Build an option. Its name may be in any case, or in snake case."""
        return cls(name.replace("_", "").lower(), text, spelled)


OptionSource = Mapping[str, str] | Sequence[GivenOption]
"""Options as Spark passes them (strings by name), or as a Python call gave them."""


class GivenOptions:
    """The options of one call, by their documented names.

    Attributes:
        known: the documented names that the call takes.

    Args:
        options: the options as given.
        known: the documented names that the call takes; `learn` adds others.

    Raises:
        InvalidRequestError: an option that is not in `known` was given twice with different values.
    """

    def __init__(self, options: OptionSource, known: Iterable[str]) -> None:
        if isinstance(options, Mapping):
            options = [GivenOption.of(key, value, key) for key, value in options.items()]
        self.known = tuple(known)
        documented = {name.lower(): name for name in self.known}
        self._taken: dict[str, list[GivenOption]] = {}
        rest: dict[str, GivenOption] = {}
        for one in options:
            if one.name in documented:
                self._taken.setdefault(documented[one.name], []).append(one)
            elif not _same_text(rest.setdefault(one.name, one).text, one.text):
                raise _contradiction(rest[one.name], one)
        self._rest = rest

    @property
    def rest(self) -> dict[str, str]:
        """The options that are not in `known`, by lower-case name: options of the file format, or mistakes."""
        return {name: one.text for name, one in self._rest.items()}

    def learn(self, names: Iterable[str]) -> None:
        """Add names of options that are valid because of the value of another option."""
        for name in names:
            if name not in self.known:
                self.known = (*self.known, name)
                if (one := self._rest.pop(name.lower(), None)) is not None:
                    self._taken[name] = [one]

    def texts(self, *names: str) -> list[str]:
        """Return the values given under these names, unparsed."""
        return [one.text for name in names for one in self._taken.get(name, [])]

    def take(self, name: str, parse: Callable[[str], T], *, secret: bool = False) -> T | None:
        """Return the parsed value of an option, or None if it was not given.

        Args:
            secret: whether the value must not appear in an error.

        Raises:
            InvalidRequestError: `parse` refused the value, or the option was given twice with different values. The
                error names the option, and its value unless it is secret.
        """
        given = self._taken.get(name, [])
        values = [_parsed(name, one.text, parse, secret) for one in given]
        for one, value in zip(given, values, strict=True):
            if value != values[0]:
                raise _contradiction(given[0], one)
        return values[0] if values else None


def _parsed(name: str, value: str, parse: Callable[[str], T], secret: bool) -> T:
    try:
        return parse(value)
    except InvalidRequestError as error:
        if secret:
            raise InvalidRequestError(error.message, option=name) from None
        raise InvalidRequestError(error.message, option=name, value=value) from error
    except ValueError as error:  # `parse` is another package's
        raise invalid_value(name, value, secret=secret) from (None if secret else error)


def _same_text(one: str, other: str) -> bool:
    """Check whether two values mean the same in every file format, because the format may not be known yet."""
    return one == other or one.lower() == other.lower() in ("true", "false")


def _contradiction(one: GivenOption, other: GivenOption) -> InvalidRequestError:
    return InvalidRequestError(
        "an option is given twice with different values: leave one of them out",
        first=one.spelled,
        second=other.spelled,
    )


def refuse_unknown(unknown: Iterable[str], known: Iterable[str]) -> None:
    """Refuse options that are not valid in this call.

    Args:
        unknown: the names of the invalid options, as given.
        known: the names that are valid in this call, including those of the chosen format.

    Raises:
        InvalidRequestError: there are unknown options; the message suggests the nearest valid name, or the format that
            has an option with this name.
    """
    unknown = tuple(unknown)
    if not unknown:
        return
    documented = {name.lower(): name for name in known}
    of_formats = {name for one in FORMATS.values() for name in one.parsers} - set(documented)
    for key in unknown:
        near = difflib.get_close_matches(key.lower(), [*documented, *sorted(of_formats)], n=1, cutoff=0.5)
        if near and near[0] in of_formats:
            owners = [one.name for one in FORMATS.values() if near[0] in one.parsers]
            raise InvalidRequestError(
                f"unknown option: {near[0]} is an option of {' and '.join(owners)} files: leave it out, or choose that "
                "format",
                option=key,
            )
        # Spark lower-cases what the user wrote; show the names as the documentation spells them.
        hint = re.sub(r"[\w.]+", lambda word: documented.get(word.group(), word.group()), nearest(key, documented))
        raise InvalidRequestError(f"unknown option: {hint}", option=key)
