"""Run ``holdfast fs find``: find files and directories by name, type, size or time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import Word, byte_count
from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.fs.times import time_ms
from holdfast.cli.output import Output
from holdfast.cli.patterns import compile_word
from holdfast.cli.screen import in_one_line
from holdfast.cli.session import Session, lists_from_namespaces

if TYPE_CHECKING:
    from holdfast.namespace import FileStatus

_EPILOG = """\b
Examples:
  holdfast fs find holdfast://prod/data -name '*.parquet' -size +100M
  holdfast fs find holdfast://prod/ -type d -maxdepth 2
  holdfast fs find holdfast://prod/logs -newer 2013-01-31T12:00
  holdfast fs find holdfast://prod/data -newer holdfast://prod/data/_SUCCESS

All conditions must hold. Sizes are +N for more than N bytes, -N for less, N for exactly N, with k, M, G or T for
multiples of 1024. A directory comes just before its entries, which are sorted."""

_Condition = Callable[["FileStatus"], bool]


def _size(text: str) -> tuple[str, int]:
    sign = text[:1] if text[:1] in "+-" else ""
    return sign, byte_count(text[len(sign) :])


@fs_command("find", epilog=_EPILOG)
@with_urls
@click.option("-name", "names", multiple=True, metavar="PATTERN", help="The name matches; one of them, if repeated.")
@click.option("-iname", "any_case", multiple=True, metavar="PATTERN", help="The same, in lower or upper case.")
@click.option("-type", "kind", type=Word(["f", "d"]), help="Files (f) or directories (d) only.")
@click.option("-size", "size", type=_size, metavar="[+-]N[kMGT]", help="The file is larger, smaller or this large.")
@click.option("-newer", "newer", metavar="TIME|URL", help="Modified after a time, or after another file.")
@click.option("-mindepth", "min_depth", type=click.IntRange(min=0), default=0, metavar="N", help="Not above level N.")
@click.option("-maxdepth", "max_depth", type=click.IntRange(min=0), metavar="N", help="Not below level N; URL is 0.")
@lists_from_namespaces
def find(
    urls: tuple[str, ...],
    glob: bool,
    names: tuple[str, ...],
    any_case: tuple[str, ...],
    kind: str | None,
    size: tuple[str, int] | None,
    newer: str | None,
    min_depth: int,
    max_depth: int | None,
    session: Session,
    out: Output,
) -> None:
    """Print the URLs of all files and directories at and below URL that meet the conditions."""
    from holdfast.cli.fs.descent import descend
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems
    from holdfast.cli.fs.rows import fields

    conditions = _conditions(names, any_case, kind, size)
    if newer is not None:
        after_ms = _newer_than(newer, session)
        conditions.append(lambda status: status.mtime_ms > after_ms)
    problems = Problems(out, lines=True)
    tops = find_items(session, urls, glob=glob)
    for top in tops:
        below = descend(top.namespace, top.status.path, max_depth=max_depth, failed=problems.below(top.base))
        for depth, status in itertools.chain([(0, top.status)], below):
            if depth >= min_depth and all(condition(status) for condition in conditions):
                item = top.at(status)
                out.line(fields(item))
                out.say(in_one_line(item.url))
    problems.end(len(tops))


def _conditions(
    names: Sequence[str], any_case: Sequence[str], kind: str | None, size: tuple[str, int] | None
) -> list[_Condition]:
    conditions: list[_Condition] = []
    patterns = [compile_word(one) for one in names]
    patterns += [re.compile(compile_word(one).pattern, re.DOTALL | re.IGNORECASE) for one in any_case]
    if patterns:
        conditions.append(lambda status: any(pattern.fullmatch(status.name) for pattern in patterns))
    if kind is not None:
        conditions.append(lambda status: status.is_directory == (kind == "d"))
    if size is not None:
        sign, amount = size
        conditions.append(lambda status: not status.is_directory and _compares(status.size, sign, amount))
    return conditions


def _compares(size_bytes: int, sign: str, amount: int) -> bool:
    if sign == "+":
        return size_bytes > amount
    return size_bytes < amount if sign == "-" else size_bytes == amount


def _newer_than(text: str, session: Session) -> int:
    """Return the time that the option means, milliseconds since the epoch."""
    from holdfast.cli.fs.items import find_spot, is_namespace_url

    if not is_namespace_url(text):
        return time_ms(text)
    spot = find_spot(session, text)
    return spot.namespace.status(spot.path).mtime_ms
