"""Run ``holdfast fs cat`` and ``holdfast fs head``: print the bytes of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import byte_count
from holdfast.cli.fs.command import fs_command, with_urls
from holdfast.cli.output import Output
from holdfast.cli.session import Session, streams_from_namespaces

if TYPE_CHECKING:
    from holdfast.cli.fs.items import Item

_CAT_EPILOG = """\b
Examples:
  holdfast fs cat holdfast://prod/data/one.csv
  holdfast fs cat --glob 'holdfast://prod/logs/*.gz' | gunzip | wc -l

The bytes are printed as they are."""

_HEAD_EPILOG = """\b
Examples:
  holdfast fs head holdfast://prod/data/one.csv
  holdfast fs head -n 1 --glob 'holdfast://prod/data/*.csv'
  holdfast fs head -c 4 holdfast://prod/data/one.parquet

The bytes are printed as they are, one file after the other."""

_READERS = 4
"""How many pieces of a large file are read at the same time."""


@fs_command("cat", epilog=_CAT_EPILOG)
@with_urls
@streams_from_namespaces
def cat(urls: tuple[str, ...], glob: bool, session: Session, out: Output) -> None:
    """Print files, one after the other."""
    print_files(urls, session, out, glob=glob)


@fs_command("head", epilog=_HEAD_EPILOG)
@with_urls
@click.option("-n", "--lines", type=click.IntRange(min=0), default=10, show_default=True, help="Lines of each file.")
@click.option("-c", "--bytes", "length", metavar="SIZE", type=byte_count, help="Bytes of each file, instead of lines.")
@streams_from_namespaces
def head(urls: tuple[str, ...], glob: bool, lines: int, length: int | None, session: Session, out: Output) -> None:
    """Print the first lines or bytes of files."""
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems

    items = find_items(session, urls, glob=glob)
    problems = Problems(out)
    printed = 0
    for item in items:
        with problems.noted(item.url):
            file = item.namespace.open(item.status.path)
            if length is not None:
                for piece in file.chunks(0, length):
                    out.data(piece)
            else:
                for piece in _first_lines(file.chunks(chunk_bytes=64 * 1024), lines):
                    out.data(piece)
            printed += 1
    problems.end(printed)


def print_files(urls: Sequence[str], session: Session, out: Output, *, glob: bool) -> None:
    """Print the bytes of files, one after the other, and end the command if one of them could not be printed."""
    from holdfast.cli.fs.items import find_items
    from holdfast.cli.fs.problems import Problems

    items = find_items(session, urls, glob=glob)
    problems = Problems(out)
    printed = 0
    for item in items:
        with problems.noted(item.url):
            for piece in _pieces(item):
                out.data(piece)
            printed += 1
    problems.end(printed)


def _pieces(item: Item) -> Iterator[bytes]:
    """Yield the content of a file in pieces, of which a few are read in advance."""
    from holdfast.cli.fs.places.base import read_pieces

    file = item.namespace.open(item.status.path)
    return read_pieces(file.read, file.size, _READERS)


def _first_lines(chunks: Iterable[bytes], lines: int) -> Iterator[bytes]:
    for chunk in chunks:
        if lines <= 0:
            return
        end = 0
        while lines > 0 and end < len(chunk):
            found = chunk.find(b"\n", end)
            end = len(chunk) if found < 0 else found + 1
            lines -= found >= 0
        yield chunk[:end]
