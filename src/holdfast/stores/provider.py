"""Describe a kind of store: its URL schemes, its options and how to open it.

A `StoreProvider` is all that the rest of Holdfast knows about a kind of store. The built-in providers are listed in
`holdfast.stores.registry`; other packages register theirs as entry points. This module imports no store, so that a
program can parse URLs and options before it imports a store. Every command of Holdfast imports this module to learn its
flags, so small values are named tuples: defining a named tuple takes 40 µs, and a dataclass 1 ms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from holdfast.errors import InvalidRequestError
from holdfast.wording import is_unicode, parse_digits, suggest_nearest

if TYPE_CHECKING:
    from holdfast.stores.base import ObjectStore


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How to reach one kind of store: the base class of each provider's options.

    A subclass is a frozen dataclass in which every field has a default. Its `repr` hides secrets, and pickling keeps
    them, because tasks in other processes open the store as well.
    """


def fold_name(name: str) -> str:
    """Return an option name in lower case and without underscores: ``secret_key`` and ``secretKey`` are one option."""
    return name.replace("_", "").lower()


class OptionSpec(NamedTuple):
    """An option that users give as a string, and the field of the options class that it sets.

    Attributes:
        name: the documented name, in camel case; callers may write it in any case and in snake case.
        field: the name of the field in the provider's options class.
        parse: returns the field's value; raises `InvalidRequestError` with one sentence. The caller adds the option's
            name and, unless it is secret, its value.
        secret: whether the value must never be shown, nor be accepted on a command line.
        shared: whether the value is the same for all clients on all machines, so that a namespace keeps it for them; no
            secret, and no path of one machine.
    """

    name: str
    field: str
    parse: Callable[[str], object] = str
    secret: bool = False
    shared: bool = False

    @property
    def keyword(self) -> str:
        """The name in snake case, as Python callers write it."""
        return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", self.name)


class CommandFlag(NamedTuple):
    """A flag of Holdfast's commands that sets an option of a store, or an environment variable.

    Attributes:
        flag: the flag itself, such as ``--endpoint-url``.
        help: one sentence for ``--help``.
        metavar: placeholder of the value in ``--help``; empty for click's default.
        option: name of the option that the flag sets; empty if it sets `variable`.
        variable: environment variable that the flag sets for this process and its child processes.
        prepare: checks the value and returns the value to pass on; raises `InvalidRequestError`.
    """

    flag: str
    help: str
    metavar: str = ""
    option: str = ""
    variable: str = ""
    prepare: Callable[[str], str] = str


class HadoopFileSystem(NamedTuple):
    """Hadoop's own file system for the same data, through which Spark can read it.

    Attributes:
        scheme: the scheme of its URLs, such as ``s3a``.
        settings: Hadoop settings through which users configure it, such as ``fs.s3a.…``; empty if it needs none.
        package: the JAR that contains it; empty if it is part of Hadoop.
        fail_fast: called with a `Location.root`; returns settings with which a trial connection to that store gives up
            soon. None if no trial is needed because the file system uses no network.
    """

    scheme: str
    settings: str = ""
    package: str = ""
    fail_fast: Callable[[str], Mapping[str, str]] | None = None


class Location(NamedTuple):
    """A directory in a store, parsed from a URL.

    Attributes:
        root: names the store: for example, a bucket or a database file.
        prefix: key of the directory, without a slash at either end; empty for the whole store.
    """

    root: str
    prefix: str


def _split_at_slash(rest: str) -> Location:
    root, _, prefix = rest.partition("/")
    return Location(root, prefix.strip("/"))


@dataclass(frozen=True, kw_only=True, eq=False)
class StoreProvider:
    """One kind of store.

    Attributes:
        schemes: the URL schemes in lower case; the first is the canonical one.
        open: opens the store that holds a location. Makes no request: a missing bucket is reported by the first call to
            the store.
        locate: parses what follows ``scheme://``; raises `InvalidRequestError`, whose variables never contain
            credentials. The default takes everything up to the first slash as the root.
        options: the class of the store's options; `StoreOptions` itself if the store has no options.
        specs: the options that users may give as strings.
        flags: the options that Holdfast's commands take as flags; only built-in providers have any.
        hadoop: Hadoop's file system for the same data; None if Hadoop has none.
        inner_options: for a store that keeps its data in another store: the field of `options` that receives the
            options of all other stores, because only the opened store knows which one it needs. Empty for none.
    """

    schemes: tuple[str, ...]
    open: Callable[[Location, Any], ObjectStore]
    locate: Callable[[str], Location] = _split_at_slash
    options: type[StoreOptions] = StoreOptions
    specs: tuple[OptionSpec, ...] = ()
    flags: tuple[CommandFlag, ...] = ()
    hadoop: HadoopFileSystem | None = None
    inner_options: str = ""

    def __post_init__(self) -> None:
        if not self.schemes or any(scheme != scheme.lower() for scheme in self.schemes):
            raise InvalidRequestError("a provider needs at least one url scheme in lower case", schemes=self.schemes)
        odd = next((spec.name for spec in self.specs if fold_name(spec.name) != spec.name.lower()), None)
        if odd is not None:
            raise InvalidRequestError("name a store option in camel case, such as lockTimeout", option=odd)
        if any(spec.shared and spec.secret for spec in self.specs):
            raise InvalidRequestError("a secret option of a store cannot be shared: declare it as one of both")

    def url(self, location: Location) -> str:
        """Return the canonical URL of a location; it contains no credentials."""
        base = f"{self.schemes[0]}://{location.root}"
        if not location.prefix or base.endswith(":///"):
            return base + location.prefix
        return f"{base}/{location.prefix}"


# --- the options of a call, passed to their parsers -------------------------------------------------------------------
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
        """Build an option from its name, in any case or snake case, its value, and the name as the caller wrote it."""
        return cls(fold_name(name), text, spelled)


OptionSource = Mapping[str, str] | Sequence[GivenOption]
"""Options as Spark passes them (strings by name), or as a Python call gave them."""


class GivenOptions:
    """The options that a caller gave in one call, looked up by their documented names.

    Attributes:
        known: the documented names that the call takes.

    Args:
        options: the options as given.
        known: the documented names that the call takes; `learn` adds others.

    Raises:
        InvalidRequestError: an option was given twice with different values, or is no valid Unicode.
    """

    def __init__(self, options: OptionSource, known: Iterable[str]) -> None:
        if isinstance(options, Mapping):
            options = [GivenOption.of(key, value, key) for key, value in options.items()]
        self.known = tuple(known)
        self._given: dict[str, GivenOption] = {}
        for one in options:
            if not (is_unicode(one.text) and is_unicode(one.spelled)):
                raise InvalidRequestError("the value of an option must be valid Unicode: change it", option=one.spelled)
            first = self._given.setdefault(one.name, one)
            if first.text != one.text and not first.text.lower() == one.text.lower() in ("true", "false"):
                raise contradiction_error(first.spelled, one.spelled)

    @property
    def unknown(self) -> list[GivenOption]:
        """The options that are not in `known`, for a call that takes no others."""
        known = {name.lower() for name in self.known}
        return [one for name, one in self._given.items() if name not in known]

    @property
    def rest(self) -> dict[str, str]:
        """The options that are not in `known`, by lower-case name: options of the file format, or mistakes."""
        return {one.name: one.text for one in self.unknown}

    def add_known_names(self, names: Iterable[str]) -> None:
        """Add names of options that are valid because of the value of another option."""
        self.known = tuple(dict.fromkeys((*self.known, *names)))

    def texts(self, *names: str) -> list[str]:
        """Return the values of the given options among `names`, as the strings that the caller gave."""
        return [self._given[name.lower()].text for name in names if name.lower() in self._given]

    def take(self, name: str, parse: Callable[[str], T], *, secret: bool = False) -> T | None:
        """Return the parsed value of an option, or None if it was not given.

        Args:
            secret: whether the value must not appear in an error.

        Raises:
            InvalidRequestError: `parse` refused the value. The error names the option, and its value unless it is
                secret.
        """
        return next((_parse_value(name, text, parse, secret) for text in self.texts(name)), None)

    def fields(self, specs: Iterable[OptionSpec]) -> dict[str, Any]:
        """Return the parsed values of the options that were given, by the names of the fields that they set."""
        found = {spec.field: self.take(spec.name, spec.parse, secret=spec.secret) for spec in specs}
        return {name: value for name, value in found.items() if value is not None}


def _parse_value(name: str, text: str, parse: Callable[[str], T], secret: bool) -> T:
    message = "the value of an option is invalid: see the documentation of its store"
    try:
        return parse(text)
    except (InvalidRequestError, ValueError) as error:  # a ValueError comes from the parser of another package
        if isinstance(error, InvalidRequestError):
            message = error.message
        if secret:
            raise InvalidRequestError(message, option=name) from None
        raise InvalidRequestError(message, option=name, value=text) from error


def contradiction_error(first: str, second: str) -> InvalidRequestError:
    """Return the error for two values of one option that differ.

    Args:
        first, second: the option's name as the caller wrote it, both times.
    """
    return InvalidRequestError(
        "an option is given twice with different values: leave one of them out", first=first, second=second
    )


# --- values of options ------------------------------------------------------------------------------------------------
MIB = 1024 * 1024
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?")
_UNITS = {"": 1, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}


def make_choice_parser(choices: Mapping[str, T]) -> Callable[[str], T]:
    """Return a parser that accepts the words in `choices`, in any case, and returns the value of the given word."""

    def parse_choice(text: str) -> T:
        word = text.strip().lower()
        if word not in choices:
            raise InvalidRequestError(f"no such choice: {suggest_nearest(word, choices)}")
        return choices[word]

    return parse_choice


def make_word_parser(*words: str) -> Callable[[str], str]:
    """Return a parser that accepts one of `words`, in any case, and returns that word."""
    return make_choice_parser({word: word for word in words})


def as_boolean(text: str) -> bool:
    """Parse ``true`` or ``false``, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise InvalidRequestError("not a boolean: use true or false")
    return word == "true"


def make_number_parser(least: int, most: int) -> Callable[[str], int]:
    """Return a parser that accepts whole numbers from `least` to `most`, both included."""

    def parse_number(text: str) -> int:
        found = parse_digits(text.strip())
        if found is None or not least <= found <= most:
            raise InvalidRequestError(f"not a whole number from {least} to {most}: write one")
        return found

    return parse_number


def make_size_parser(least: int) -> Callable[[str], int]:
    """Return a parser for sizes from `least` bytes on, with or without a unit: ``134217728``, ``128m``, ``1 GiB``."""

    def parse_size(text: str) -> int:
        match = _SIZE.fullmatch(text.strip().lower())
        size_bytes = int(match[1]) * _UNITS[match[2]] if match else -1
        if not least <= size_bytes < 2**50:
            at_least = f" of at least {least} bytes" if least > 1 else ""
            raise InvalidRequestError(f"not a size{at_least}: write bytes, or a number with k, m or g such as 128m")
        return size_bytes

    return parse_size
