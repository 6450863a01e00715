"""Collect the options of a call and pass each of them to its parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.stores.provider import OptionSpec, fold_name
from holdfast.wording import is_unicode

T = TypeVar("T")


class GivenOption(NamedTuple):
    """One option that the caller set.

    Attributes:
        name: the option's name, as `fold_name` returns it.
        text: the option's value; not part of the repr, since it may be a secret.
        spelled: the name as the caller wrote it; for a keyword argument, the keyword.
    """

    name: str
    text: str
    spelled: str

    def __repr__(self) -> str:
        return f"GivenOption(name={self.name!r}, spelled={self.spelled!r})"

    @classmethod
    def of(cls, name: str, text: str, spelled: str) -> GivenOption:
        """Build an option. Its name may be in any case, or in snake case."""
        return cls(fold_name(name), text, spelled)


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
        InvalidRequestError: an option that is not in `known` was given twice with different values; or an option is no
            valid Unicode.
    """

    def __init__(self, options: OptionSource, known: Iterable[str]) -> None:
        if isinstance(options, Mapping):
            options = [GivenOption.of(key, value, key) for key, value in options.items()]
        self.known = tuple(known)
        documented = {name.lower(): name for name in self.known}
        self._taken: dict[str, list[GivenOption]] = {}
        rest: dict[str, GivenOption] = {}
        for one in options:
            if not (is_unicode(one.text) and is_unicode(one.spelled)):
                raise InvalidRequestError("the value of an option must be valid Unicode: change it", option=one.spelled)
            if one.name in documented:
                self._taken.setdefault(documented[one.name], []).append(one)
            elif not _same_text(rest.setdefault(one.name, one).text, one.text):
                raise contradiction(rest[one.name].spelled, one.spelled)
        self._rest = rest

    @property
    def rest(self) -> dict[str, str]:
        """The options that are not in `known`, by lower-case name: options of the file format, or mistakes."""
        return {name: one.text for name, one in self._rest.items()}

    @property
    def unknown(self) -> list[GivenOption]:
        """The options that are not in `known`, for a call that takes no others."""
        return list(self._rest.values())

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
                raise contradiction(given[0].spelled, one.spelled)
        return values[0] if values else None

    def fields(self, specs: Iterable[OptionSpec]) -> dict[str, Any]:
        """Return the parsed values of the options that were given, by the names of the fields that they set."""
        found = {spec.field: self.take(spec.name, spec.parse, secret=spec.secret) for spec in specs}
        return {name: value for name, value in found.items() if value is not None}


def _parsed(name: str, text: str, parse: Callable[[str], T], secret: bool) -> T:
    message = "the value of an option is invalid: see the documentation of its store"
    try:
        return parse(text)
    except (InvalidRequestError, ValueError) as error:  # a ValueError comes from the parser of another package
        if isinstance(error, InvalidRequestError):
            message = error.message
        if secret:
            raise InvalidRequestError(message, option=name) from None
        raise InvalidRequestError(message, option=name, value=text) from error


def _same_text(one: str, other: str) -> bool:
    """Check whether two values mean the same in every file format, because the format may not be known yet."""
    return one == other or one.lower() == other.lower() in ("true", "false")


def contradiction(first: str, second: str) -> InvalidRequestError:
    """Return the error for two values of one option that differ.

    Args:
        first, second: the option's name as the caller wrote it, both times.
    """
    return InvalidRequestError(
        "an option is given twice with different values: leave one of them out", first=first, second=second
    )
