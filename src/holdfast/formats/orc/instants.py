"""Rows of an ORC file as Spark reads them: instants of any year and time zone, dates of both calendars.

An instant is stored as seconds since 2015 began in the time zone of its stripe, and nanoseconds. Java's writer counted
whole seconds towards 1970; its reader, and this one, takes the last second off again if there is a fraction that it can
see (a millisecond or more). Files say whether their days are those of the proleptic Gregorian calendar; if they do not,
as Spark's do not, the days before 1582-10-15 are Julian.
"""

from __future__ import annotations

import datetime
import functools
import re
import zlib
import zoneinfo
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as pa_orc
import pyarrow.types as pat

from holdfast.errors import CorruptDataError, HoldfastError, UnsupportedError
from holdfast.formats.calendars.rebase import rebase_dates, rebase_instants
from holdfast.formats.columns.types import children
from holdfast.formats.orc.arrays import holds
from holdfast.formats.orc.tail import TIMESTAMP, TIMESTAMP_INSTANT, Tail, read_tail
from holdfast.formats.orc.view import nanoseconds, needs_view, seconds, types_only
from holdfast.formats.streams import input_file

__all__ = ["OrcRows", "open_orc"]

_BASE = datetime.datetime(2015, 1, 1)
_BASE_S = 1_420_070_400
_UTC_NAMES = frozenset({"", "UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "UCT", "Zulu", "Universal"})
_FIXED_ZONE = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d))?(?::?(\d\d))?")
_VISIBLE_NS = 999_999  # what Java's reader takes for no fraction


def open_orc(source: BinaryIO) -> OrcRows:
    """Open a seekable file, which stays open.

    Raises:
        CorruptDataError: this is not an ORC file.
        UnsupportedError: it has unions, or a codec that only Java knows.
    """
    try:
        return OrcRows(source, read_tail(source))
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedError("an ORC file has types that cannot be read here: read it with Spark") from error
    except (pa.ArrowException, OSError, ValueError, IndexError, zlib.error) as error:
        if isinstance(error, HoldfastError):
            raise
        raise CorruptDataError("not an ORC file: check what was put there and when") from error


class OrcRows:
    """A file whose stripes are read with the values that its writer was given.

    Attributes:
        schema: as pyarrow has it, with the attributes of columns as metadata; instants in UTC.
        names: of the columns.
        stripes: how many there are.
    """

    def __init__(self, source: BinaryIO, tail: Tail) -> None:
        self._source, self._tail = source, tail
        self._has_view = needs_view(tail)
        self._file = pa_orc.ORCFile(input_file(types_only(source, tail) if self._has_view else source))
        self.schema: pa.Schema = self._file.schema
        self.names = tuple(self.schema.names)
        self.stripes = len(tail.stripes)
        if self._has_view:
            self._file = pa_orc.ORCFile(input_file(seconds(source, tail)))
        self._fractions: Any = None

    def read_stripe(self, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Some columns of a stripe, in the file's order.

        Raises:
            CorruptDataError: the file is damaged.
            UnsupportedError: an instant is beyond Arrow's microseconds, or its time zone is not known.
        """
        batch = self._decoded(self._file, stripe, columns)
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        names = [name for name in arrays if holds(self.schema.field(name).type, pat.is_timestamp)]
        if names:
            if self._fractions is None:
                self._fractions = pa_orc.ORCFile(input_file(nanoseconds(self._source, self._tail)))
            fractions = self._decoded(self._fractions, stripe, names)
            zones = self._zones(self._tail.stripe_footer(self._source, self._tail.stripes[stripe]).zone)
            for name in names:
                whole = zones[self.schema.get_field_index(name)]
                arrays[name] = self._instants(arrays[name], fractions.column(name), iter(whole))
        if not self._tail.proleptic:
            arrays = {name: _with_gregorian_dates(array) for name, array in arrays.items()}
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def _decoded(self, file: Any, stripe: int, columns: Sequence[str]) -> pa.RecordBatch:
        try:
            return file.read_stripe(stripe, columns=list(columns))
        except (pa.ArrowException, OSError) as error:
            raise CorruptDataError("an ORC file is damaged: check what was put there and when") from error

    def _zones(self, of_stripe: str | None) -> dict[int, list[str]]:
        """For each top column the time zones of the instants in it, in the order of the types."""
        kinds = self._tail.kinds
        zones: dict[int, list[str]] = {}
        for column, top in self._tail.top_column_of().items():
            if kinds[column] in (TIMESTAMP, TIMESTAMP_INSTANT):
                zone = "UTC" if kinds[column] == TIMESTAMP_INSTANT else of_stripe
                zones.setdefault(top, []).append(zone or "UTC")
        return zones

    def _instants(self, whole: Any, fractions: Any, zones: Iterator[str]) -> Any:
        """A column of both views put together."""
        kind = fractions.type
        if pat.is_timestamp(kind):
            instants = _instants(whole, fractions, zone := next(zones))
            return instants if self._tail.proleptic else rebase_instants(instants, zone)
        below = [self._instants(*pair, zones) for pair in zip(_below(whole), _below(fractions), strict=True)]
        return _with_children(whole, below) if below else whole


# --- columns ----------------------------------------------------------------------------------------------------------
def _below(array: Any) -> list[Any]:
    if pat.is_struct(array.type):
        return [array.field(index) for index in range(array.type.num_fields)]
    return [array.values] if pat.is_nested(array.type) else []


def _with_children(array: Any, below: Sequence[Any]) -> Any:
    """A nested array, as it was decoded, over other children."""
    kind = array.type
    fields = [field.with_type(child.type) for field, child in zip(children(kind), below, strict=True)]
    if pat.is_map(kind):
        kind = pa.map_(fields[0].type.field(0), fields[0].type.field(1))
    else:
        kind = pa.struct(fields) if pat.is_struct(kind) else pa.list_(fields[0])
    own = array.buffers()[: 1 if pat.is_struct(kind) else 2]
    return pa.Array.from_buffers(kind, len(array), own, offset=array.offset, children=list(below))


def _with_gregorian_dates(array: Any) -> Any:
    if pat.is_date(array.type):
        return rebase_dates(array)
    if not holds(array.type, pat.is_date):
        return array
    return _with_children(array, [_with_gregorian_dates(child) for child in _below(array)])


# --- instants ---------------------------------------------------------------------------------------------------------
def _instants(whole: Any, fractions: Any, zone: str) -> Any:
    """Microseconds from seconds as they are stored and instants within the second after 2015 began in UTC."""
    nanos = pc.subtract(fractions.cast(pa.int64()), _BASE_S * 1_000_000_000)
    try:
        stored = pc.add_checked(whole, _base_s(zone))
        borrowed = pc.and_(pc.less(stored, 0), pc.greater(nanos, _VISIBLE_NS))
        micros = pc.multiply_checked(pc.subtract(stored, borrowed.cast(pa.int64())), 1_000_000)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(
            "an instant is beyond the years that Spark holds: leave the column out with `columns`"
        ) from error
    return pc.add(micros, pc.divide(nanos, 1000)).cast(pa.timestamp("us", "UTC"))


@functools.cache
def _base_s(zone: str) -> int:
    """When 2015 began in a time zone, in seconds since the epoch."""
    if zone in _UTC_NAMES:
        return _BASE_S
    fixed = _FIXED_ZONE.fullmatch(zone)
    if fixed is not None:
        hours, minutes, seconds = (int(part or 0) for part in fixed.groups()[1:])
        ahead_s = 3600 * hours + 60 * minutes + seconds
        return _BASE_S + ahead_s if fixed.group(1) == "-" else _BASE_S - ahead_s
    try:
        return int(_BASE.replace(tzinfo=zoneinfo.ZoneInfo(zone)).timestamp())
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnsupportedError(
            "an ORC file was written in a time zone that is not known here: pip install tzdata, or read it with Spark",
            zone=zone,
        ) from error
