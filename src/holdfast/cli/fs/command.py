"""Declare the commands of ``holdfast fs``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import click

THREADS = 8
"""How many files are copied or changed at the same time."""


def fs_command(
    name: str, *, epilog: str, ignore_unknown_options: bool = False
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command whose ``-h`` means readable sizes, as everywhere among such commands; help is ``--help``.

    Args:
        ignore_unknown_options: whether an argument may begin with ``-``, such as a mode.
    """
    settings = {"help_option_names": ["--help"], "ignore_unknown_options": ignore_unknown_options}
    return click.command(name, epilog=epilog, context_settings=settings)


def with_glob(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option that makes patterns of URLs; pass it as `glob`."""
    return click.option("--glob", is_flag=True, help="URLs are patterns, such as '*.csv'.")(command)


def with_urls(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument of commands that take any number of URLs, and what `with_glob` adds; pass it as `urls`."""
    return click.argument("urls", metavar="URL...", nargs=-1, required=True)(with_glob(command))


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments of commands that copy or move; pass them as `sources` and `target`."""

    @click.argument("paths", metavar="SOURCE... TARGET", nargs=-1)
    @functools.wraps(command)
    def run(*args: Any, paths: tuple[str, ...], **given: Any) -> None:
        if len(paths) < 2:  # click would say that the source is missing
            raise click.UsageError(f"Missing argument '{'TARGET' if paths else 'SOURCE'}'.")
        command(*args, sources=paths[:-1], target=paths[-1], **given)

    return run


class CopyOptions(NamedTuple):
    """How to copy.

    Attributes:
        overwrite: whether files may be replaced.
        preserve: whether copies get the permissions and times of their sources.
        threads: how many files are copied at the same time.
    """

    overwrite: bool
    preserve: bool
    threads: int


def with_copy_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that copy; pass them as `how`."""

    @click.option("-f", "--overwrite", is_flag=True, help="Replace files that exist.")
    @click.option("-p", "--preserve", is_flag=True, help="Keep permissions and modification times of files.")
    @click.option(
        "-t",
        "--threads",
        type=click.IntRange(1, 64),
        default=THREADS,
        show_default=True,
        help="Parallel copies.",
    )
    @functools.wraps(command)
    def run(*args: Any, overwrite: bool, preserve: bool, threads: int, **given: Any) -> None:
        command(*args, how=CopyOptions(overwrite, preserve, threads), **given)

    return run
