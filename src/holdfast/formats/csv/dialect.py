"""Split CSV into records exactly like univocity, the parser that Spark uses, with Spark's settings.

A value is quoted if its first character is the quote. Within quotes the escape character escapes a quote or itself;
elsewhere it is an ordinary character. A quote within quotes that is neither escaped nor followed by a separator is not
a closing quote: the value is then everything up to the next separator or line end, including the quotes. Blank lines
are not records. All lines end in the same way as the first line of the file; within quotes, such line ends become line
feeds. No value is trimmed, and there are no comments.

Nearly all records are *plain*: they need none of the unusual rules, and pyarrow's fast parser reads them in the same
way. `split` finds runs of plain records in a few passes of compiled code; this module parses only the other records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from holdfast.errors import CorruptDataError
from holdfast.formats.lines.blocks import BYTE_ORDER_MARK, read_chunks

Record = list[str | None]
"""The values of one record. None means that nothing is between two separators; an empty string means ``""``."""

_FEWEST_PARSED = 64  # records parsed before `split` looks for a plain run again; doubled while there is none


@dataclass(frozen=True, slots=True)
class Plain:
    """Complete records, each ending in a line feed, that an RFC 4180 parser reads as Spark does.

    Attributes:
        data: the records.
        doubled: whether a quote within quotes is written as two quotes, instead of being escaped.
    """

    data: bytes
    doubled: bool


@dataclass(frozen=True, slots=True)
class Records:
    """Records that this module has parsed."""

    rows: list[Record]


class Dialect:
    """The regular expressions for one choice of separator, quote, escape and line end.

    Args:
        separator, quote, escape: one ASCII character each.
        line_end: the end of a record: a line feed, a carriage return, or both.
    """

    def __init__(self, separator: str, quote: str, escape: str, line_end: str = "\n") -> None:
        self.separator = separator
        self.quote = quote
        self.escape = escape
        self.line_end = line_end
        self._mark = line_end.encode()  # put before the first record: a value begins after a separator or line end
        self.doubled = quote == escape
        sep, q, esc = (re.escape(one) for one in (separator, quote, escape))
        before = sep + re.escape(line_end[-1])
        start, end = rf"{q}(?<=[{before}]{q})", rf"{q}(?=[{sep}]|{line_end})"  # quote first: fast to find
        doubled = rf"[^{q}]*(?:{q}{q}[^{q}]*)*"
        # After an escape exactly one alternative matches, so there is no backtracking.
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
        """Replace the escape sequences in the text between two quotes, all of which must be well formed."""
        return self._unescaping_text.sub(r"\1", text) if self.escape in text else text

    def outside_simple(self, lines: bytes) -> bytes | None:
        """Remove all quoted values; return None if one of them is incomplete or contains an escape."""
        return self._outside(self._simple, lines)

    def outside_doubled(self, lines: bytes) -> bytes | None:
        """Remove all quoted values, which may contain doubled quotes; return None if one of them is incomplete."""
        return self._outside(self._doubled, lines)

    def _outside(self, values: re.Pattern[bytes], lines: bytes) -> bytes | None:
        outside = values.sub(b"", self._mark + lines)
        return None if self._unmatched.search(outside) else outside[len(self._mark) :]

    def start_of_first_malformed(self, lines: bytes) -> int:
        """Return the start of the first record with a malformed quoted value; without one, the length of `lines`."""
        marked = self._mark + lines
        safe = outside = 0
        for match in self._opening.finditer(marked):
            safe = max(safe, marked.rfind(self._mark, outside, match.start()))
            outside = match.end()
            if outside - match.start() == 1:
                return safe
        return len(lines)

    def with_doubled_quotes(self, lines: bytes) -> bytes:
        """Double each quote in well-formed quoted values, instead of escaping it."""
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
    """Yield the records of a file, in order.

    Memory: a chunk of the file, or its longest record if that is longer.

    Args:
        source: the file, read from its current position.
        codec: a pyarrow codec; empty for none.
        make_dialect: takes a line end and returns the dialect with it.
        line_end: the end of a line; empty to detect it from the file's first line.

    Raises:
        CorruptDataError: the file cannot be decompressed or is not UTF-8.
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
    """Return the line end of the first line; None if `data` ends before it is certain which one it is."""
    found = re.search(rb"\r\n|\n|\r" if final else rb"\r\n|\n|\r(?=.)", data, re.DOTALL)
    return None if found is None else found[0].decode()


def decode_csv(data: bytes) -> str:
    """Decode UTF-8.

    Raises:
        CorruptDataError: the bytes are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptDataError(
            "a CSV file is not UTF-8: convert it, or read it with another tool", bytes=data[error.start : error.end]
        ) from error


def split(data: bytes, dialect: Dialect, *, final: bool) -> tuple[list[Plain | Records], int]:
    """Return the whole records at the start of `data` and their length in bytes.

    Args:
        data: bytes that begin with a record.
        dialect: the file's dialect.
        final: whether `data` is the rest of the file; then its last record needs no line end.
    """
    pieces: list[Plain | Records] = []
    used, most = 0, _FEWEST_PARSED
    while used < len(data):
        rest = data[used:]
        piece, length = _plain(rest, dialect, final)
        if piece is not None:
            pieces.append(piece)
            used += length
            most = _FEWEST_PARSED
            continue
        rows, length = _parse_odd(rest, dialect, final, most)
        if not length:
            break
        pieces.append(Records(rows))
        used += length
        most *= 2
    return pieces, used


def _plain(data: bytes, dialect: Dialect, final: bool) -> tuple[Plain | None, int]:
    """Return the run of plain records at the start of `data` and its length; None and 0 if there is none."""
    line_end = dialect.line_end.encode()
    lines = data if final else data[: _after_last(data, line_end)]
    if final and not lines.endswith(line_end):
        lines += line_end
    doubled = dialect.doubled
    outside: bytes | None = lines
    length = len(lines)
    if dialect.quote.encode() in lines:
        outside = dialect.outside_simple(lines)
        if outside is None:
            lines = lines[: dialect.start_of_first_malformed(lines)]
            length = len(lines)
            outside = dialect.outside_simple(lines)
        if outside is None:
            lines, doubled = dialect.with_doubled_quotes(lines), True
            outside = dialect.outside_doubled(lines)
    # pyarrow would also end a line at a line feed or carriage return alone
    if (
        not lines
        or outside is None
        or b"\r" in outside.replace(line_end, b"")
        or b"\n" in outside.replace(line_end, b"")
    ):
        return None, 0
    return Plain(lines.replace(line_end, b"\n"), doubled), min(length, len(data))


def _after_last(data: bytes, line_end: bytes) -> int:
    found = data.rfind(line_end)
    return 0 if found < 0 else found + len(line_end)


def _parse_odd(data: bytes, dialect: Dialect, final: bool, most: int) -> tuple[list[Record], int]:
    """Parse at most `most` records and return them with their length in bytes."""
    if not final:
        data = data[: _after_last(data, dialect.line_end.encode())]
    text = decode_csv(data)
    rows, used = tokens(text, dialect, final=final, most=most)
    return rows, len(data) if used == len(text) else len(text[:used].encode())


# --- the unusual rules ------------------------------------------------------------------------------------------------
def tokens(text: str, dialect: Dialect, *, final: bool = True, most: int = 2**62) -> tuple[list[Record], int]:
    """Parse records and return them with the number of characters consumed.

    Args:
        text: text that begins with a record.
        dialect: the file's dialect.
        final: whether the text is the rest of the file.
        most: the maximum number of records.
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
    """Raised when the text ends within a quoted value."""


class _Scanner:
    """Parse text record by record; parse malformed quoted values step by step, like univocity's parser.

    The scanner replaces every line end with a line feed. If the file's line end is another one, a lone line feed does
    not end a line: it is replaced with a character that the text does not contain. Within quotes, the lone line feed is
    restored. Outside quotes it is rejected, because univocity ends a line there or not, depending on how its buffer
    happens to be filled.
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
        """Convert a position in the scanner's text to a position in the original text."""
        return position + (self._text.count("\n", 0, position) if self._dialect.line_end == "\r\n" else 0)

    def record(self) -> Record | None:
        """Return the next record's values: an empty list for a blank line; None if the record may be incomplete."""
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
                assert match is not None, "the pattern also matches the empty string"
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
            raise CorruptDataError("a CSV file mixes line ends: convert them to one kind", first=self._dialect.line_end)

    def _quoted(self) -> str:
        """Parse the quoted value that begins here; leave `at` at the character that ends it."""
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
        self.at -= 1  # the position of the separator or line end
        return "".join(self._value)

    # --- univocity's steps: `at` is the position after the current character, `_char` ---------------------------------
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
        char = self._char  # if the file ends here, `_char` must keep its value: see `_rest_of_file`
        while char not in stops:
            self._value.append(char)
            if self.at >= len(self._text):
                raise _EndOfText
            char = self._text[self.at]
            self.at += 1
        self._char = char

    def _take_raw(self) -> None:
        """Take everything up to the next separator or line end, because the value was not a quoted one after all."""
        self._value.insert(0, self._dialect.quote)
        self._next()
        self._take_until(self._dialect.separator, "\n")

    def _take_blanks(self) -> None:
        """Skip blanks after a closing quote; add them to the value if no separator or line end follows."""
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
        """Return the quoted value that has no closing quote at the end of the file."""
        self._refuse_lone_feed("".join(self._value))
        self.at = len(self._text)
        if self._char == self._dialect.quote and self._previous != self._dialect.quote and not self._unescaped:
            self._value.append(self._dialect.quote)
        return "".join(self._value)


def _lone_feeds(text: str, lone: str) -> str:
    return "\r\n".join(part.replace("\n", lone) for part in text.split("\r\n"))
