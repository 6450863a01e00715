"""Parse what users type: durations, sizes, times, words, ``KEY=VALUE`` pairs, and how to reach a store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from holdfast.errors import InvalidRequestError
from holdfast.stores.provider import CommandFlag, GivenOption, StoreOptions, fold_name
from holdfast.stores.registry import (
    BUILT_IN,
    find_providers_for_options,
    installed_providers,
    list_secret_option_names,
    parse_store_options,
)
from holdfast.wording import suggest_nearest

if TYPE_CHECKING:
    from holdfast.commit import CommitContext, CommitSettings, Progress

_UNITS_S = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)")
_LONGEST_AGE_S = 36_500 * 86_400.0
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgtp])(?:i?b)?|b)?")
_LARGEST_SIZE_BYTES = 8191 * 1024**5
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{3}(?:\d{3})?)?)?)?(?:Z|[+-]\d\d:\d\d)?")


def parse_age(text: str) -> float:
    """Parse a duration such as 90s, 15m, 1h or 2d into seconds."""
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        raise click.BadParameter(f"'{text}' is not an age: write a number and a unit, such as 0s, 15m, 1h or 2d")
    seconds = float(found[1]) * _UNITS_S[found[2]]
    if seconds > _LONGEST_AGE_S:
        raise click.BadParameter("an age is at most 36500d, which is a century: choose a shorter one")
    return seconds


def parse_byte_count(text: str) -> int:
    """Parse a size such as 512, 64k, 10M or 1.5G into bytes; k is 1024."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise click.BadParameter(f"'{text}' is not a size: write a number and a unit, such as 512, 64k, 10M or 1.5G")
    size_bytes = Decimal(found[1]) * 1024 ** " kmgtp".index(found[2] or " ")
    if size_bytes > _LARGEST_SIZE_BYTES:
        raise click.BadParameter("a size is at most 8191P: choose a smaller one")
    return int(size_bytes)


def parse_time_ms(text: str) -> int:
    """Parse a date or a time, in UTC if it has no zone, into milliseconds since the epoch."""
    stripped = text.strip()
    try:
        if not _TIME.fullmatch(stripped):
            raise ValueError("not a time")
        found = datetime.fromisoformat(stripped.replace("Z", "+00:00"))
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is not a time: write 2013-01-31, 2013-01-31T12:00 or 2013-01-31T12:00:00+01:00"
        ) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    return round(found.timestamp() * 1000)


def refuse_empty_value(text: str) -> str:
    """Return the value of an option unchanged, but refuse an empty one: it is most likely an unset shell variable."""
    if not text:
        raise click.BadParameter("the value is empty: give one")
    return text


class WordChoice(click.Choice[str]):
    """A click parameter type that accepts one of a few words; the error for a wrong word suggests the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return str(value)
        raise click.BadParameter(
            f"'{value}' is not a valid choice: {suggest_nearest(str(value), self.choices)}", ctx, param
        )


def refuse_password(url: str, variable: str) -> None:
    """Check that a database URL from the command line contains no password.

    Args:
        variable: the environment variable that may contain the URL with its password, for the error.

    Raises:
        InvalidRequestError: it contains a password (which the message does not show).
    """
    from holdfast.transactions.registry import has_password

    if has_password(url):
        raise InvalidRequestError(
            "a password does not belong on a command line, which every user of the machine can read: put the whole url "
            f"in the variable {variable} and leave the option out, or put the password in a file of the database's "
            "client, such as ~/.pgpass"
        )


def parse_key_value_pairs(texts: Iterable[str], *, reserved: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Parse ``KEY=VALUE`` strings into names and values, as the user wrote them.

    Args:
        reserved: keys that have a command-line parameter of their own, mapped to that parameter.

    Raises:
        InvalidRequestError: a string does not have the form ``KEY=VALUE``, its key is reserved, or it contains a
            credential (which the message does not show).
    """
    parameters = {key.lower(): parameter for key, parameter in (reserved or {}).items()}
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        name = key.strip()
        if not equals or not name:
            raise InvalidRequestError("an option is written as key=value", option=text)
        if (own := parameters.get(fold_name(name))) is not None:
            raise InvalidRequestError(f"this option has its own parameter: use {own}", option=name)
        pairs.append((name, value))
    _refuse_credential_options(GivenOption.of(name, value, name) for name, value in pairs)
    return pairs


def parse_option_pairs(
    texts: Iterable[str], *, reserved: Mapping[str, str] | None = None, urls: Iterable[str] = ()
) -> list[GivenOption]:
    """Parse the ``KEY=VALUE`` strings of ``--option`` into options of a read or write.

    Args:
        reserved: keys that have a command-line parameter of their own, mapped to that parameter.
        urls: the urls of the stores that the command opens, except for urls in the options themselves.

    Raises:
        InvalidRequestError: `parse_key_value_pairs` refuses a string, or a url has an unknown scheme.
    """
    pairs = [
        GivenOption.of(name, value, f"--option {name}")
        for name, value in parse_key_value_pairs(texts, reserved=reserved)
    ]
    _refuse_credential_options(pairs, [*urls, *(one.text for one in pairs if one.name in _PLACES)])
    return pairs


_PLACES = frozenset({"shareddir", "reportdir"})
"""The names, as `fold_name` returns them, of options whose values are urls."""


def _refuse_credential_options(given: Iterable[GivenOption], urls: Iterable[str] = ()) -> None:
    """Refuse options that contain credentials of the built-in stores, or of the stores at `urls`."""
    secret = list_secret_option_names(find_providers_for_options(urls))
    for one in given:
        if one.name in secret:
            raise InvalidRequestError(
                "credentials do not belong on a command line, which every user of the machine can read: put them in "
                "the environment or in a file such as ~/.aws",
                option=one.spelled,
            )


@dataclass(frozen=True)
class ConnectionOptions:
    """The connection options of object stores that a user gave, such as the endpoint.

    Credentials come from the environment only: an option that contains one is refused.

    Attributes:
        given: the options. Each one records the command-line flag that set it (`GivenOption.spelled`).
    """

    given: tuple[GivenOption, ...] = ()

    @classmethod
    def take_from_parameters(cls, given: dict[str, Any]) -> ConnectionOptions:
        """Remove the values of `make_connection_parameters` from a command's parameters, and return them."""
        found: list[GivenOption] = []
        for flag in _list_store_flags():
            value = given.pop(_flag_parameter_name(flag))
            if value is not None and flag.option:
                found.append(GivenOption.of(flag.option, str(value), flag.flag))
            elif value is not None:
                os.environ[flag.variable] = str(value)  # Spark's workers, children of this process, inherit it
        return cls((*found, *given.pop("store_option")))

    def options(self, url: str) -> tuple[GivenOption, ...]:
        """Return the connection options for the store at `url`, after checking that they are allowed.

        Raises:
            InvalidRequestError: an option contains a credential of this store (which the message does not show), or the
                url has an unknown scheme.
        """
        _refuse_credential_options(self.given, [url])
        return self.given

    def parse_options_for_all_store_kinds(self) -> tuple[StoreOptions, ...]:
        """Return the connection options for each kind of store that has them; for use before the url is known.

        Raises:
            InvalidRequestError: an option contains a credential of an installed store (which the message does not
                show), or no installed store has the option.
        """
        if not self.given:
            return ()  # no search for installed stores
        providers = installed_providers()
        _refuse_credential_options(self.given, [f"{provider.schemes[0]}://" for provider in providers])
        return parse_store_options(self.given, providers)

    def open(
        self,
        url: str,
        progress: Progress | None = None,
        *,
        settings: CommitSettings | None = None,
        staging: bool = False,
    ) -> CommitContext:
        """Open the destination at `url` with these connection options; the caller closes it.

        Args:
            progress: called while long work goes on.
            settings: the settings of commits; None for the defaults.
            staging: whether the context must give access to the directories of committers that stage files,
                `staging-*`.
        """
        from holdfast.commit import open_context
        from holdfast.commit.context import ignore_progress

        return open_context(
            url,
            store_options=parse_store_options(self.options(url), find_providers_for_options([url])),
            settings=settings,
            progress=progress or ignore_progress,
            staging=staging,
            leave_no_trace=True,
        )


def _make_option_callback(flag: CommandFlag) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return a callback for click that rejects the values of a flag that the store's provider rejects."""

    def prepare_option_value(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        if value is None:
            return None
        if value == "":  # an unset shell variable must not redirect requests from a private server to AWS
            raise click.BadParameter(f"{flag.flag} is empty: give a value, or leave the option out")
        try:
            return flag.prepare(value)
        except InvalidRequestError as error:
            raise click.BadParameter(str(error)) from None

    return prepare_option_value


def make_connection_parameters() -> list[click.Parameter]:
    """Return click's options for the connection to a store, such as ``--endpoint-url``; see `Reach.taken`."""
    return [
        *(
            click.Option([one.flag], metavar=one.metavar or None, callback=_make_option_callback(one), help=one.help)
            for one in _list_store_flags()
        ),
        click.Option(
            ["--store-option"],
            multiple=True,
            metavar="KEY=VALUE",
            callback=_parse_store_options,
            help="Option of the store at URL; repeatable.",
        ),
    ]


def _list_store_flags() -> list[CommandFlag]:
    return [flag for provider in BUILT_IN for flag in provider.flags]


def _parse_store_options(ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> list[GivenOption]:
    """Parse ``--store-option`` into options, as in `Reach.given`."""
    reserved = {flag.option: flag.flag for flag in _list_store_flags() if flag.option}
    try:
        pairs = parse_key_value_pairs(texts, reserved=reserved)
    except InvalidRequestError as error:
        raise click.BadParameter(str(error)) from None
    return [GivenOption.of(name, text, f"--store-option {name}") for name, text in pairs]


def _flag_parameter_name(flag: CommandFlag) -> str:
    """Return the name of the parameter in which click passes the value of a flag."""
    return flag.flag.removeprefix("--").replace("-", "_")
