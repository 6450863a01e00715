"""What commands have in common: the options that all of them take, and durations as a person writes them."""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from holdfast.cli.failures import PROBLEM, as_holdfast_error, exit_code
from holdfast.cli.output import Documents, Output, hush
from holdfast.errors import InvalidRequestError
from holdfast.stores.provider import CommandFlag, fold_name
from holdfast.stores.registry import BUILT_IN, parse_store_options, secret_names

if TYPE_CHECKING:
    from holdfast.commit import CommitContext, CommitSettings, Progress

__all__ = ["Reach", "Word", "age", "on_store", "option_pairs", "parse_options", "reports"]

P = ParamSpec("P")

_UNITS_S = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)")


def age(text: str) -> float:
    """A duration such as 90s, 15m, 1h, 2d, as seconds: a type for `click.option`."""
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        raise click.BadParameter(f"'{text}' is not an age: write a number and a unit, such as 0s, 15m, 1h or 2d")
    return float(found[1]) * _UNITS_S[found[2]]


class Word(click.Choice[str]):
    """One of a few words; of a wrong one the nearest is offered."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return str(value)
        near = difflib.get_close_matches(str(value).lower(), self.choices, n=1, cutoff=0.5)
        offer = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(self.choices)}"
        raise click.BadParameter(f"'{value}' is not one of these words: {offer}", ctx, param)


def option_pairs(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names and values that were given by ``--option KEY=VALUE``, in their order.

    Raises:
        InvalidRequestError: not of that form, or a credential, which is never repeated.
    """
    for text in texts:
        key, equals, value = text.partition("=")
        name = key.strip()
        if not equals or not name:
            raise InvalidRequestError("an option is written as key=value", option=text)
        if fold_name(name) in secret_names():
            raise InvalidRequestError(
                "credentials do not belong on a command line, which everybody on the machine can read: put them into "
                "the environment or ~/.aws",
                option=name,
            )
        yield name, value


def parse_options(texts: Iterable[str], *, reserved: Mapping[str, str]) -> dict[str, str]:
    """What was given by ``--option KEY=VALUE``, repeated.

    Args:
        reserved: options that have another place on the command line, and which.

    Raises:
        InvalidRequestError: as of `option_pairs`; twice with different values, or one of `reserved`.
    """
    found: dict[str, str] = {}
    others = {name.lower(): place for name, place in reserved.items()}
    for name, value in option_pairs(texts):
        folded = name.replace("_", "").lower()
        if folded in others:
            raise InvalidRequestError(f"the command says this in another way: give {others[folded]}", option=name)
        same = next((known for known in found if known.replace("_", "").lower() == folded), None)
        if same is not None and found[same] != value:
            raise InvalidRequestError("an option is given twice with different values: leave one out", option=name)
        found.setdefault(name if same is None else same, value)
    return found


@dataclass(frozen=True)
class Reach:
    """How to reach a store. Credentials are not here: they come from the environment only.

    Attributes:
        given: the store's options and the flags that gave them, as (option, flag, value).
    """

    given: tuple[tuple[str, str, str], ...] = ()

    @contextlib.contextmanager
    def open(
        self,
        url: str,
        progress: Progress | None = None,
        *,
        settings: CommitSettings | None = None,
        staging: bool = False,
    ) -> Iterator[CommitContext]:
        """The destination at `url`, closed at the end.

        Args:
            staging: whether jobs that stage files are to be found.
        """
        from holdfast.commit import open_context
        from holdfast.commit.context import silent

        ctx = open_context(
            url,
            store_options=parse_store_options({option: value for option, _flag, value in self.given}),
            settings=settings,
            progress=progress or silent,
            staging=staging,
            leave_no_trace=True,
        )
        try:
            yield ctx
        finally:
            ctx.close()


def _prepared(flag: CommandFlag) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return click's callback for a flag: it refuses what the store's provider refuses."""

    def prepare(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        if value is None:
            return None
        if value == "":  # a variable of the shell that is not set must not turn a server of one's own into AWS
            raise click.BadParameter(f"{flag.flag} is empty: give a value, or leave the option out")
        try:
            return flag.prepare(value)
        except InvalidRequestError as error:
            raise click.BadParameter(str(error)) from None

    return prepare


def reports(command: Callable[P, None]) -> Callable[..., None]:
    """Give a command ``--json`` and ``--debug``, hand it an `Output` as `out`, and turn its errors into exit codes."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")
    @click.option("--debug", is_flag=True, help="Show tracebacks and Spark's own log.")
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        documents = click.get_current_context().find_object(Documents) or Documents()
        documents.wanted = bool(kwargs.pop("as_json"))
        out = Output(json=documents.wanted, debug=bool(kwargs.pop("debug")), documents=documents)
        try:
            command(*args, out=out, **kwargs)  # type: ignore[arg-type]  # every command takes `out`
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            hush()  # the reader has seen enough, as `head` does
            raise click.exceptions.Exit(0) from None
        except Exception as error:
            known = as_holdfast_error(error)
            if known is None:
                raise
            if out.debug:
                traceback.print_exception(error)
            out.error(known)
            raise click.exceptions.Exit(exit_code(known) or PROBLEM) from None

    return run


def on_store(command: Callable[P, None]) -> Callable[..., None]:
    """Give a command the flags of the built-in stores and hand it a `Reach` as `reach`."""
    flags = [flag for provider in BUILT_IN for flag in provider.flags]

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        given = []
        for flag in flags:
            value = kwargs.pop(_parameter(flag))
            if value is not None and flag.option:
                given.append((flag.option, flag.flag, str(value)))
            elif value is not None:
                os.environ[flag.variable] = str(value)  # Spark's workers are children of this process: they see it too
        command(*args, reach=Reach(tuple(given)), **kwargs)  # type: ignore[arg-type]  # every such command takes `reach`

    decorated: Callable[..., None] = run
    for flag in reversed(flags):
        option = click.option(flag.flag, metavar=flag.metavar or None, callback=_prepared(flag), help=flag.help)
        decorated = option(decorated)
    return decorated


def _parameter(flag: CommandFlag) -> str:
    """Return the name under which click hands a flag's value over."""
    return flag.flag.removeprefix("--").replace("-", "_")
