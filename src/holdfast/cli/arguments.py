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

if TYPE_CHECKING:
    from holdfast.commit import CommitContext, CommitSettings, Progress
    from holdfast.stores.s3.options import S3Options

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
        if name.replace("_", "").lower() in _SECRETS:
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


_SECRETS = ("accesskey", "secretkey", "sessiontoken")


@dataclass(frozen=True)
class Reach:
    """How to reach a store. Credentials are not here: they come from the environment only."""

    endpoint_url: str | None = None
    region: str | None = None
    ca_bundle: str | None = None

    def s3_options(self) -> S3Options:
        """For the S3 store."""
        from holdfast.stores.s3.options import S3Options

        return S3Options(endpoint_url=self.endpoint_url, region=self.region, ca_bundle=self.ca_bundle)

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
            s3=self.s3_options(),
            settings=settings,
            progress=progress or silent,
            staging=staging,
            leave_no_trace=True,
        )
        try:
            yield ctx
        finally:
            ctx.close()


def _not_empty(name: str, value: object) -> str | None:
    """A variable of the shell that is not set must not turn a server of one's own into AWS."""
    if value == "":
        option = f"--{name.replace('_', '-')}"
        raise click.BadParameter(f"{option} is empty: give a value, or leave the option out")
    return None if value is None else str(value)


def _known_bundle(name: str) -> str:
    """The file's absolute path: Spark's workers may work in another directory."""
    from holdfast.stores.s3.tls import refuse_bundle

    path = os.path.abspath(os.path.expanduser(name))
    try:
        refuse_bundle(path)
    except InvalidRequestError as error:
        raise click.BadParameter(str(error)) from None
    return path


def _known_profile(ctx: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    if name is not None:
        import botocore.session

        known = botocore.session.Session().available_profiles
        if name not in known:
            raise click.BadParameter(f"no such profile '{name}': ~/.aws knows {', '.join(known) or 'none'}")
    return name


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
    """Give a command the options of S3 and hand it a `Reach` as `reach`."""

    @click.option("--endpoint-url", metavar="URL", help="S3 server that is not AWS, e.g. http://127.0.0.1:9000.")
    @click.option("--region", help="S3 region.")
    @click.option("--ca-bundle", metavar="FILE", help="Certificates (PEM) that vouch for the server's own.")
    @click.option("--profile", callback=_known_profile, help="Profile of ~/.aws to take credentials from.")
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        profile = kwargs.pop("profile")
        if profile:
            os.environ["AWS_PROFILE"] = str(profile)  # Spark's workers are children of this process: they see it too
        names = ("endpoint_url", "region", "ca_bundle")
        endpoint, region, bundle = (_not_empty(name, kwargs.pop(name)) for name in names)
        reach = Reach(endpoint, region, None if bundle is None else _known_bundle(bundle))
        command(*args, reach=reach, **kwargs)  # type: ignore[arg-type]  # every such command takes `reach`

    return run
