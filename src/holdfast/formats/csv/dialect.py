"""CSV into records, by the rules that Spark's parser (univocity, as Spark sets it up) has.

A value is quoted if its first character is the quote. Within quotes the escape character stands before a quote or
before itself, elsewhere it is a character like any other. A quote within quotes that is neither escaped nor followed
by a separator was no closing quote: the value is then everything up to the next separator or line end, quotes and all.
Blank lines are no records. Lines end in what the first line of the file ends in; within quotes such line ends become
line feeds. No value is trimmed, nothing is a comment.

Nearly all records need none of the odd rules. `split` finds stretches of records that pyarrow's parser reads the same
way, in a few passes of compiled code, and takes only the others apart here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.errors import CorruptDataError
from holdfast.formats.lines.blocks import BYTE_ORDER_MARK, read_chunks

__all__ = ["Dialect", "Plain", "Record", "Records", "read_records", "split", "tokens"]

Record = list[str | None]
"""The values of one record; None for nothing at all between two separators, an empty string for an empty quoted one."""

_FEWEST_ODD = 64  # records taken apart before `split` looks for a plain stretch again; doubled while there is none


@dataclass(frozen=True, slots=True)
class Plain:
    """Whole records that a parser of RFC 4180 reads as Spark does, each ended by a line feed.

    Attributes:
        data: the records.
        doubled: whether quotes within quotes are doubled.
    """

    data: bytes
    doubled: bool


@dataclass(frozen=True, slots=True)
class Records:
    """Records that were taken apart here."""

    rows: list[Record]


class Dialect:
    """The patterns for one choice of characters.

    Args:
        separator, quote, escape: one ASCII character each.
        line_end: what records end in: a line feed, a carriage return, or both.
    """

    def __init__(self, separator: str, quote: str, escape: str, line_end: str = "\n") -> None:
        self.separator = separator
        self.quote = quote
        self.escape = escape
        self.line_end = line_end
        self._mark = line_end.encode()  # in front of the first record: values begin behind a separator or a line end
        self.doubled = quote == escape
        sep, q, esc = (re.escape(one) for one in (separator, quote, escape))
        before = sep + re.escape(line_end[-1])
        start, end = rf"{q}(?<=[{before}]{q})", rf"{q}(?=[{sep}]|{line_end})"  # the quote first: it is searched for
        doubled = rf"[^{q}]*(?:{q}{q}[^{q}]*)*"
        # Of the two ways to go on after an escape only one is open, so that nothing is tried twice.
        escaped = rf"[^{q}{esc}]*(?:{esc}(?:[{q}{esc}]|(?![{q}{esc}]))[^{q}{esc}]*)*"
        proper = doubled if self.doubled else escaped
        self._simple = re.compile(f"{start}{doubled if self.doubled else f'[^{q}{esc}]*'}{end}".encode())
        self._doubled = re.compile(f"{start}{doubled}{end}".encode())
        self._opening = re.compile(f"{start}(?:{proper}{end})?".encode())
        self._escaped = re.compile(f"{start}({escaped}){end}".encode())
        self._unmatched = re.compile(f"[{before}]{q}".encode())
        self._unescaping = re.compile(f"{esc}([{q}{esc}])".encode())
        self.unquoted = re.compile(f"[^{sep}\n]*")
        self.quoted = re.compile(rf"{q}({proper}){q}(?=[{sep}\n]|\Z)")
        self._unescaping_text = re.compile(f"{esc}([{q}{esc}])")

    def unescape(self, text: str) -> str:
        """The value of what stands between two quotes, escaped as it should be."""
        return self._unescaping_text.sub(r"\1", text) if self.escape in text else text

    def only_simple(self, lines: bytes) -> bytes | None:
        """What is outside of quotes; None if a quoted value is not simple: whole, and without escapes."""
        return self._outside(self._simple, lines)

    def only_doubled(self, lines: bytes) -> bytes | None:
        """Likewise, where quotes within quotes are doubled."""
        return self._outside(self._doubled, lines)

    def _outside(self, values: re.Pattern[bytes], lines: bytes) -> bytes | None:
        outside = values.sub(b"", self._mark + lines)
        return None if self._unmatched.search(outside) else outside[len(self._mark) :]

    def before_first_odd(self, lines: bytes) -> int:
        """Where the record begins that holds the first quoted value that is not well formed."""
        marked = self._mark + lines
        safe = outside = 0
        for match in self._opening.finditer(marked):
            safe = max(safe, marked.rfind(self._mark, outside, match.start()))
            outside = match.end()
            if outside - match.start() == 1:
                return safe
        return len(lines)

    def with_doubled_quotes(self, lines: bytes) -> bytes:
        """Well formed values with the quotes in them doubled instead of escaped."""
        escape, quote = self.escape.encode(), self.quote.encode()

        def double(match: re.Match[bytes]) -> bytes:
            inner = match[1]
            if escape not in inner:
                return match[0]
            return quote + self._unescaping.sub(rb"\1", inner).replace(quote, quote * 2) + quote

        return self._escaped.sub(double, self._mark + lines)[len(self._mark) :]


# --- reading ----------------------------------------------------------------------------------------------------------
def read_records(
    source: BinaryIO, codec: str, make_dialect: Callable[[str], Dialect], line_end: str = ""
) -> Iterator[Plain | Records]:
    """The records of a file, in order.

    Memory: a chunk of the file, or its longest record if that is longer.

    Args:
        source: the file, read from its current position.
        codec: a pyarrow codec, empty for none.
        make_dialect: the dialect for a line end.
        line_end: what lines end in, empty to take that of the file's first line.

    Raises:
        CorruptDataError: the file does not decompress, or is not UTF-8.
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
            found = _first_line_end(pending, final=False)
            if found is None:
                continue
            dialect = make_dialect(found)
        pieces, used = split(pending, dialect, final=False)
        yield from pieces
        pending = pending[used:]
    if pending:
        dialect = dialect or make_dialect(_first_line_end(pending, final=True) or "\n")
        pieces, _ = split(pending, dialect, final=True)
        yield from pieces


def _first_line_end(data: bytes, final: bool) -> str | None:
    """None if there is none, or if it cannot be told yet."""
    found = re.search(rb"\r\n|\n|\r" if final else rb"\r\n|\n|\r(?=.)", data, re.DOTALL)
    return None if found is None else found[0].decode()


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError(
            "a CSV file is not UTF-8: convert it, or read it with another tool", bytes=data[error.start : error.end]
        ) from error


def split(data: bytes, dialect: Dialect, *, final: bool) -> tuple[list[Plain | Records], int]:
    """The whole records at the start of `data`, and how many bytes they are.

    Args:
        data: what follows a whole record.
        dialect: the file's.
        final: whether `data` is the rest of the file; then its last record needs no line end.
    """
    pieces: list[Plain | Records] = []
    used, most = 0, _FEWEST_ODD
    while used < len(data):
        rest = data[used:]
        piece, length = _plain(rest, dialect, final)
        if piece is not None:
            pieces.append(piece)
            used += length
            most = _FEWEST_ODD
            continue
        rows, length = _odd(rest, dialect, final, most)
        if not length:
            break
        pieces.append(Records(rows))
        used += length
        most *= 2
    return pieces, used


def _plain(data: bytes, dialect: Dialect, final: bool) -> tuple[Plain | None, int]:
    """The stretch of records at the start that needs no odd rule, and its length; None if there is none."""
    line_end = dialect.line_end.encode()
    lines = data if final else data[: _behind_last(data, line_end)]
    if final and not lines.endswith(line_end):
        lines += line_end
    doubled = dialect.doubled
    outside: bytes | None = lines
    length = len(lines)
    if dialect.quote.encode() in lines:
        outside = dialect.only_simple(lines)
        if outside is None:
            lines = lines[: dialect.before_first_odd(lines)]
            length = len(lines)
            outside = dialect.only_simple(lines)
        if outside is None:
            lines, doubled = dialect.with_doubled_quotes(lines), True
            outside = dialect.only_doubled(lines)
    # pyarrow would end a line at a line feed or carriage return of its own
    if (
        not lines
        or outside is None
        or b"\r" in outside.replace(line_end, b"")
        or b"\n" in outside.replace(line_end, b"")
    ):
        return None, 0
    return Plain(lines.replace(line_end, b"\n"), doubled), min(length, len(data))


def _behind_last(data: bytes, line_end: bytes) -> int:
    found = data.rfind(line_end)
    return 0 if found < 0 else found + len(line_end)


def _odd(data: bytes, dialect: Dialect, final: bool, most: int) -> tuple[list[Record], int]:
    """At most `most` records, and the bytes that they take."""
    if not final:
        data = data[: _behind_last(data, dialect.line_end.encode())]
    text = _text(data)
    rows, used = tokens(text, dialect, final=final, most=most)
    return rows, len(data) if used == len(text) else len(text[:used].encode())


# --- the odd rules ----------------------------------------------------------------------------------------------------
def tokens(text: str, dialect: Dialect, *, final: bool = True, most: int = 2**62) -> tuple[list[Record], int]:
    """Records of a text, and how many of its characters they are.

    Args:
        text: begins with a record.
        dialect: the file's.
        final: whether the text is the rest of the file.
        most: how many records are wanted.
    """
    scanner = _Scanner(text, dialect, final)
    rows: list[Record] = []
    used = 0
    while len(rows) < most and not scanner.at_end:
        row = scanner.record()
        if row is None:
            break
        if row:
            rows.append(row)
        used = scanner.at
    return rows, scanner.source_position(used)


class _EndOfText(Exception):  # a signal within this module
    """The text ends within a quoted value."""


class _Scanner:
    """Goes through a text record by record; odd quoted values are taken step by step as univocity's parser does.

    Line ends other than a line feed become one. Line feeds that end no line become a character that the text has not:
    within quotes they are themselves; outside univocity ends a line there or not as its buffer happens to be filled.
    """

    def __init__(self, text: str, dialect: Dialect, final: bool) -> None:
        self._dialect = dialect
        self._final = final
        self._lone = ""
        if dialect.line_end != "\n":
            self._lone = next(chr(code) for code in range(0xE000, 0x10FFFF) if chr(code) not in text)
            text = text.replace("\n", self._lone) if dialect.line_end == "\r" else _lone_feeds(text, self._lone)
            text = text.replace(dialect.line_end, "\n")
        self._text = text
        self._ends = {dialect.separator, "\n", *([self._lone] if self._lone else [])}
        self.at = 0
        self._char = self._previous = "\0"
        self._unescaped = False
        self._value: list[str] = []

    @property
    def at_end(self) -> bool:
        return self.at >= len(self._text)

    def source_position(self, position: int) -> int:
        """A position in the text as it was given."""
        return position + (self._text.count("\n", 0, position) if self._dialect.line_end == "\r\n" else 0)

    def record(self) -> Record | None:
        """The values of the next record, none for a blank line; None if the record may go on behind the text."""
        text, separator, quote = self._text, self._dialect.separator, self._dialect.quote
        row: Record = []
        if text[self.at] == "\n":
            self.at += 1
            return row
        while True:
            if self.at >= len(text):
                row.append(None)
                return row if self._final else None
            char = text[self.at]
            if char in self._ends:
                row.append(None)
            elif char == quote:
                try:
                    row.append(self._restored(self._quoted()))
                except _EndOfText:
                    if not self._final:
                        return None
                    row.append(self._restored(self._rest_of_file()))
                    return row
            else:
                match = self._dialect.unquoted.match(text, self.at)
                assert match is not None, "the pattern matches nothing, too"
                self._refuse_lone_feed(match[0])
                row.append(match[0])
                self.at = match.end()
            if self.at >= len(text):
                return row if self._final else None
            self._refuse_lone_feed(text[self.at])
            self.at += 1
            if text[self.at - 1] != separator:
                return row

    def _restored(self, value: str) -> str:
        return value.replace(self._lone, "\n") if self._lone and self._lone in value else value

    def _refuse_lone_feed(self, outside: str) -> None:
        if self._lone and self._lone in outside:
            raise CorruptDataError(
                "lines of a CSV file end in different ways: convert them to one", first=self._dialect.line_end
            )

    def _quoted(self) -> str:
        """The quoted value that begins here; leaves `at` at what ends it."""
        match = self._dialect.quoted.match(self._text, self.at)
        if match is not None and (match.end() < len(self._text) or self._final):
            self.at = match.end()
            inner = match[1]
            if self._dialect.doubled:
                return inner.replace(self._dialect.quote * 2, self._dialect.quote)
            return self._dialect.unescape(inner)
        self._char, self._previous, self._unescaped = self._dialect.quote, "\0", False
        self._value = []
        begin = self.at
        self._take_quoted()
        self._refuse_lone_feed(self._text[begin : self.at])
        self.at -= 1  # at the separator or line end
        return "".join(self._value)

    # --- univocity's steps: `at` is behind the current character, `_char` ---------------------------------------------
    def _next(self) -> str:
        if self.at >= len(self._text):
            raise _EndOfText
        self._char = self._text[self.at]
        self.at += 1
        return self._char

    def _take_quoted(self) -> None:
        quote, escape = self._dialect.quote, self._dialect.escape
        self.at += 1
        self._next()
        while True:
            char = self._char
            if self._previous == quote and (char <= " " or char in self._ends):
                break
            if char not in (quote, escape):
                if self._previous == quote:
                    self._unescaped = True
                    self._value += [quote, char]
                    self._take_raw()
                    return
                if self._previous == escape:
                    self._value.append(escape)
                self._take_until(quote, escape)
                self._previous = self._char
                self._next()
            else:
                self._take_escape()
                self._previous = self._char
                self._next()
        self._take_blanks()

    def _take_until(self, *stops: str) -> None:
        char = self._char  # where the file ends within the run, `_char` stays what it was: see `_rest_of_file`
        while char not in stops:
            self._value.append(char)
            if self.at >= len(self._text):
                raise _EndOfText
            char = self._text[self.at]
            self.at += 1
        self._char = char

    def _take_raw(self) -> None:
        """What began with a quote was no quoted value: all up to the next separator or line end belongs to it."""
        self._value.insert(0, self._dialect.quote)
        self._next()
        self._take_until(self._dialect.separator, "\n")

    def _take_blanks(self) -> None:
        """Blanks behind a closing quote do not count, unless something follows them."""
        if self._char in self._ends:
            return
        blanks = []
        while self._char <= " " and self._char not in self._ends:
            blanks.append(self._char)
            self._next()
        if self._char not in self._ends:
            self._value += [self._dialect.quote, *blanks, self._char]
            self._previous = self._char
            self._take_raw()

    def _take_escape(self) -> None:
        quote, escape = self._dialect.quote, self._dialect.escape
        char, previous = self._char, self._previous
        if not self._dialect.doubled and char == escape and previous == escape:
            self._value.append(escape)
            self._char = "\0"
        elif previous == escape:
            if char == quote:
                self._value.append(quote)
                self._char = "\0"
            else:
                self._value.append(previous)
        elif char == quote and previous == quote:
            self._value.append(quote)
        elif previous == quote:
            self._value.append(quote)
            self._previous = char
            self._take_escaped_rest()

    def _take_escaped_rest(self) -> None:
        quote, escape = self._dialect.quote, self._dialect.escape
        while self._char not in (self._dialect.separator, "\n"):
            if self._char not in (quote, escape):
                if self._previous == quote:
                    self._value.append(quote)
                    self._previous = self._char
                    self._take_escaped_rest()
                    return
                self._value.append(self._char)
            else:
                self._take_escape()
            self._previous = self._char
            self._next()

    def _rest_of_file(self) -> str:
        """The value that the file's end leaves open."""
        self._refuse_lone_feed("".join(self._value))
        self.at = len(self._text)
        if self._char == self._dialect.quote and self._previous != self._dialect.quote and not self._unescaped:
            self._value.append(self._dialect.quote)
        return "".join(self._value)


def _lone_feeds(text: str, lone: str) -> str:
    return "\r\n".join(part.replace("\n", lone) for part in text.split("\r\n"))
