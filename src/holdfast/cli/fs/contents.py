"""Run ``holdfast fs cat`` and ``holdfast fs head``: print the bytes of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import click

from holdfast.cli.arguments import byte_count
from holdfast.cli.command import Glob, Opens, Run, Shape, Urls, command, option

_READERS = 4
"""How many pieces of a large file are read at the same time."""

_LINES = option("-n --lines", "Lines of each file.", type=click.IntRange(min=0), default=10)
_BYTES = option("-c --bytes", "Bytes of each file, instead of lines.", type=byte_count)


@command(Opens.NAMESPACES, Shape.BYTES)
def cat(run: Run, urls: Urls, glob: Glob) -> None:
    """Print files, one after the other.

    Examples:
      holdfast fs cat holdfast://prod/data/one.csv
      holdfast fs cat --glob 'holdfast://prod/logs/*.gz' | gunzip | wc -l

    The bytes are printed as they are.
    """
    print_files(urls, run, glob=glob)


@command(Opens.NAMESPACES, Shape.BYTES)
def head(
    run: Run, urls: Urls, glob: Glob, lines: Annotated[int, _LINES], length: Annotated[int | None, _BYTES]
) -> None:
    """Print the first lines or bytes of files.

    Examples:
      holdfast fs head holdfast://prod/data/one.csv
      holdfast fs head -n 1 --glob 'holdfast://prod/data/*.csv'
      holdfast fs head -c 4 holdfast://prod/data/one.parquet

    The bytes are printed as they are, one file after the other.
    """
    print_files(urls, run, glob=glob, lines=lines, length=length)


def print_files(
    urls: Sequence[str], run: Run, *, glob: bool, lines: int | None = None, length: int | None = None
) -> None:
    """Print the bytes of files, one after the other, and end the command if one of them could not be printed.

    Args:
        lines, length: how many lines, or bytes, of each file; None for all.
    """
    from holdfast.cli.fs.items import Problems, find_items
    from holdfast.cli.fs.places import read_pieces

    items = find_items(run, urls, glob=glob)
    problems = Problems(run.out)
    printed = 0
    for item in items:
        with problems.noted(item.url):
            file = item.namespace.open(item.status.path)
            if length is not None:
                pieces = file.chunks(0, length)
            elif lines is not None:
                pieces = _first_lines(file.chunks(chunk_bytes=64 * 1024), lines)
            else:
                pieces = read_pieces(file.read, file.size, _READERS)
            for piece in pieces:
                run.out.data(piece)
            printed += 1
    problems.end(printed)


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
