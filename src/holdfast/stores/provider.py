"""Describe a kind of store: its URL schemes, its options and how to open it.

A `StoreProvider` is all that the rest of Holdfast knows about a kind of store. The built-in providers are listed in
`holdfast.stores.registry`; other packages register theirs as entry points. This module imports no store, so that a
program can parse URLs and options before it imports a store. Every command of Holdfast imports this module to learn its
flags, so small values are named tuples: defining a named tuple takes 40 µs, and a dataclass 1 ms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.errors import InvalidRequestError

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
