"""Split CSV into runs of whole records that pyarrow's fast parser reads as Spark's parser (univocity) does.

A value is quoted if its first character is the quote. Within quotes the escape character escapes a quote or itself;
elsewhere it is an ordinary character. All lines end in the same way as the first line of the file; within quotes, such
line ends become line feeds. Blank lines are not records. No value is trimmed, and there are no comments.

Refused is what only univocity reads in its own way: a quote within quotes that is neither escaped nor the end of the
value, a quoted value that never ends, and lines that end in different ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from holdfast.errors import CorruptDataError
from holdfast.formats.lines.blocks import BYTE_ORDER_MARK, read_chunks

Record = list[str | None]
"""The values of one record. None means that nothing is between two separators; an empty string means ``""``."""


class Records(NamedTuple):
    """Whole records, each ending in a line feed, that an RFC 4180 parser reads as Spark does.

    Attributes:
        data: the records.
        doubled: whether they may contain quotes within quotes, each written as two quotes.
    """

    data: bytes
    doubled: bool


class Dialect:
    """The regular expressions for one choice of separator, quote, escape and line end.

    Args:
        separator, quote, escape: one ASCII character each.
        line_end: the end of a record: a line feed, a carriage return, or both.
    """

    def __init__(self, separator: str, quote: str, escape: str, line_end: str = "\n") -> None:
        self.line_end = line_end.encode()
        self._quote, self._escape = quote.encode(), escape.encode()
        self._is_doubled = quote == escape
        sep, q, esc = (re.escape(one) for one in (separator, quote, escape))
        before = sep + re.escape(line_end[-1])  # a value begins after a separator or line end
        start, end = rf"{q}(?<=[{before}]{q})", rf"{q}(?=[{sep}]|{line_end})"  # quote first: fast to find
        doubled = rf"[^{q}]*(?:{q}{q}[^{q}]*)*"
        # After an escape exactly one alternative matches, so there is no backtracking.
        escaped = rf"[^{q}{esc}]*(?:{esc}(?:[{q}{esc}]|(?![{q}{esc}]))[^{q}{esc}]*)*"
        proper = doubled if self._is_doubled else escaped
        self._simple = re.compile(f"{start}{doubled if self._is_doubled else f'[^{q}{esc}]*'}{end}".encode())
        self._escaped = re.compile(f"{start}({escaped}){end}".encode())
        self._opening = re.compile(f"{start}(?:{proper}{end})?".encode())
        self._closed = re.compile(
            rf"{q}{proper}{q}(?!{q})".encode() if self._is_doubled else f"{q}{proper}{q}".encode()
        )
        self._unmatched = re.compile(f"[{before}]{q}".encode())
        self._unescaping = re.compile(f"{esc}([{q}{esc}])".encode())
        self._value = re.compile(rf"(?:{q}({doubled}){q}|([^{sep}\n]*))({sep}|\n)")

    def take(self, data: bytes, *, final: bool) -> tuple[Records, int]:
        """Return the whole records at the start of `data`, and their length in `data`.

        Args:
            data: bytes that begin with a record.
            final: whether `data` is the rest of the file; then its last record needs no line end.

        Raises:
            CorruptDataError: a record is one that only univocity reads.
        """
        end = self.line_end
        lines = data if final else data[: data.rfind(end) + len(end) if end in data else 0]
        if final and not lines.endswith(end):
            lines += end
        length, doubled, outside = len(lines), self._is_doubled, lines
        if self._quote in lines:
            outside = self._outside(self._simple, lines)
            if self._unmatched.search(outside):
                lines = lines[: self._whole_bytes(lines, final)]
                length = len(lines)
                outside = self._outside(self._simple, lines)
            if self._unmatched.search(outside):  # there are escapes
                outside = self._outside(self._escaped, lines)
                lines, doubled = self._with_doubled_quotes(lines), True
        bare = outside.replace(end, b"")
        if b"\r" in bare or b"\n" in bare:
            raise CorruptDataError(
                "a CSV file mixes line ends: convert them to one kind, or read it with spark.read", first=end.decode()
            )
        return Records(lines.replace(end, b"\n"), doubled), min(length, len(data))

    def _outside(self, values: re.Pattern[bytes], lines: bytes) -> bytes:
        """Remove quoted values. The result begins with a line end, because a value begins after one."""
        return values.sub(b"", self.line_end + lines)

    def _whole_bytes(self, lines: bytes, final: bool) -> int:
        """Return the length of the records before the first one whose quoted value goes on after `lines`."""
        marked = self.line_end + lines
        safe = outside = 0
        for match in self._opening.finditer(marked):
            safe = max(safe, marked.rfind(self.line_end, outside, match.start()))
            outside = match.end()
            if outside - match.start() == 1:
                if final or self._closed.match(marked, match.start()):
                    raise CorruptDataError(
                        "a quote in a CSV file is neither escaped nor the end of its value: set escape to the quote if "
                        "the file doubles quotes, otherwise correct it, or read it with spark.read",
                        record=decode_csv(marked[match.start() :][:80].split(self.line_end)[0], errors="replace"),
                    )
                return safe
        return len(lines)

    def _with_doubled_quotes(self, lines: bytes) -> bytes:
        """Double each quote in quoted values, instead of escaping it."""
        escape, quote = self._escape, self._quote

        def double(match: re.Match[bytes]) -> bytes:
            if escape not in match[1]:
                return match[0]
            return quote + self._unescaping.sub(rb"\1", match[1]).replace(quote, quote * 2) + quote

        return self._escaped.sub(double, self.line_end + lines)[len(self.line_end) :]

    def rows(self, records: Records) -> Iterator[tuple[Record, int]]:
        """Yield each record's values, and the position in the decoded text behind the record; skip blank lines."""
        text, quote = decode_csv(records.data), self._quote.decode()
        row: Record = []
        for match in self._value.finditer(text):
            quoted, bare, end = match.groups()
            row.append((bare or None) if quoted is None else quoted.replace(quote * 2, quote))
            if end == "\n":
                if len(row) > 1 or row[0] is not None:
                    yield row, match.end()
                row = []


def read_records(
    source: BinaryIO, codec: str, make_dialect: Callable[[str], Dialect], line_end: str = ""
) -> Iterator[Records]:
    """Yield the records of a file, in order.

    Memory: a chunk of the file, or its longest record if that is longer.

    Args:
        source: the file, read from its current position.
        codec: a pyarrow codec; empty for none.
        make_dialect: takes a line end and returns the dialect with it.
        line_end: the end of a line; empty to detect it from the file's first line.

    Raises:
        CorruptDataError: the file cannot be decompressed, or `Dialect.take` refuses a record.
    """
    dialect: Dialect | None = make_dialect(line_end) if line_end else None
    pending = b""
    started = False
    for chunk in read_chunks(source, codec):
        pending += chunk
        if not started:
            pending = pending.removeprefix(BYTE_ORDER_MARK)
            started = True
        if dialect is None:
            # A carriage return at the very end may be the first half of a line end.
            found = re.search(rb"\r\n|\n|\r(?=.)", pending, re.DOTALL)
            if found is None:
                continue
            dialect = make_dialect(found[0].decode())
        records, used = dialect.take(pending, final=False)
        if used:
            yield records
        pending = pending[used:]
    if pending:
        yield (dialect or make_dialect("\r" if pending.endswith(b"\r") else "\n")).take(pending, final=True)[0]


def decode_csv(data: bytes, errors: str = "strict") -> str:
    """Decode UTF-8.

    Raises:
        CorruptDataError: the bytes are not UTF-8.
    """
    try:
        return data.decode(errors=errors)
    except UnicodeDecodeError as error:
        raise CorruptDataError(
            "a CSV file is not UTF-8: convert it, or read it with another tool", bytes=data[error.start : error.end]
        ) from error
