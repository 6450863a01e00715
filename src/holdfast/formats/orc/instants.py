"""Read the rows of an ORC file like Spark: timestamps of any year and time zone, dates of both calendars.

A timestamp is stored as two numbers: the seconds since the start of 2015 in the time zone of its stripe, and the
nanoseconds. For timestamps before 1970, Java's writer rounds the seconds towards 1970; Java's reader, like this module,
subtracts the second again if the fraction is at least a millisecond. Each file says whether its dates use the proleptic
Gregorian calendar. If it does not, as in Spark's files, dates before 1582-10-15 are Julian.
"""

from __future__ import annotations

import datetime
import functools
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
from holdfast.formats.calendars.zones import fixed_offset_s
from holdfast.formats.columns.conversion import child_arrays, with_child_arrays
from holdfast.formats.columns.types import children
from holdfast.formats.orc.arrays import holds
from holdfast.formats.orc.messages import NOT_ORC
from holdfast.formats.orc.tail import TIMESTAMP, TIMESTAMP_INSTANT, Tail, read_tail
from holdfast.formats.orc.view import nanoseconds, needs_view, seconds, types_only
from holdfast.formats.streams import input_file

_BASE = datetime.datetime(2015, 1, 1)
_BASE_S = 1_420_070_400
_UTC_NAMES = frozenset({"", "UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "UCT", "Zulu", "Universal"})
_VISIBLE_NS = 999_999  # Java's reader ignores fractions up to this many nanoseconds


def open_orc(source: BinaryIO) -> OrcRows:
    """Open a seekable file. It stays open.

    Raises:
        CorruptDataError: the file is not ORC.
        UnsupportedError: the file has unions, or a codec that only Java supports.
    """
    try:
        return OrcRows(source, read_tail(source))
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedError("an ORC file has unsupported types: read it with Spark") from error
    except (pa.ArrowException, OSError, ValueError, IndexError, zlib.error) as error:
        if isinstance(error, HoldfastError):
            raise
        raise CorruptDataError(NOT_ORC) from error


class OrcRows:
    """An ORC file whose stripes are read with exactly the values that its writer received.

    Attributes:
        schema: the schema from pyarrow, with the attributes of columns as metadata, and timestamps in UTC.
        names: the names of the columns.
        stripes: the number of stripes.
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
        """Read some columns of a stripe, in the file's order.

        Raises:
            CorruptDataError: the file is damaged.
            UnsupportedError: a timestamp is out of the range of Arrow's microseconds, or its time zone is unknown.
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
            raise CorruptDataError("an ORC file is damaged: check what wrote it") from error

    def _zones(self, of_stripe: str | None) -> dict[int, list[str]]:
        """Map each top-level column to the time zones of the timestamps in it, in the order of the types."""
        kinds = self._tail.kinds
        zones: dict[int, list[str]] = {}
        for column, top in self._tail.top_column_of().items():
            if kinds[column] in (TIMESTAMP, TIMESTAMP_INSTANT):
                zone = "UTC" if kinds[column] == TIMESTAMP_INSTANT else of_stripe
                zones.setdefault(top, []).append(zone or "UTC")
        return zones

    def _instants(self, whole: Any, fractions: Any, zones: Iterator[str]) -> Any:
        """Combine a column's two views (seconds and fractions, see `orc.view`) into timestamps."""
        kind = fractions.type
        if pat.is_timestamp(kind):
            instants = _instants(whole, fractions, zone := next(zones))
            return instants if self._tail.proleptic else rebase_instants(instants, zone)
        below = [
            self._instants(*pair, zones) for pair in zip(child_arrays(whole), child_arrays(fractions), strict=True)
        ]
        return _with_children(whole, below) if below else whole


# --- columns ----------------------------------------------------------------------------------------------------------
def _with_children(array: Any, below: list[Any]) -> Any:
    """Replace the children of a decoded nested array, and its type accordingly."""
    kind = array.type
    fields = [field.with_type(child.type) for field, child in zip(children(kind), below, strict=True)]
    if pat.is_map(kind):
        kind = pa.map_(fields[0].type.field(0), fields[0].type.field(1))
    else:
        kind = pa.struct(fields) if pat.is_struct(kind) else pa.list_(fields[0])
    return with_child_arrays(array, kind, below)


def _with_gregorian_dates(array: Any) -> Any:
    if pat.is_date(array.type):
        return rebase_dates(array)
    if not holds(array.type, pat.is_date):
        return array
    return _with_children(array, [_with_gregorian_dates(child) for child in child_arrays(array)])


# --- timestamps -------------------------------------------------------------------------------------------------------
def _instants(whole: Any, fractions: Any, zone: str) -> Any:
    """Compute microseconds from stored seconds and fractions; these are timestamps in the first second of 2015."""
    nanos = pc.subtract(fractions.cast(pa.int64()), _BASE_S * 1_000_000_000)
    try:
        stored = pc.add_checked(whole, _base_s(zone))
        borrowed = pc.and_(pc.less(stored, 0), pc.greater(nanos, _VISIBLE_NS))
        micros = pc.multiply_checked(pc.subtract(stored, borrowed.cast(pa.int64())), 1_000_000)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(
            "a timestamp is outside Spark's range of years: leave the column out with `columns`"
        ) from error
    return pc.add(micros, pc.divide(nanos, 1000)).cast(pa.timestamp("us", "UTC"))


@functools.cache
def _base_s(zone: str) -> int:
    """Return the start of 2015 in a time zone, in seconds since the epoch."""
    if zone in _UTC_NAMES:
        return _BASE_S
    fixed_s = fixed_offset_s(zone)
    if fixed_s is not None:
        return _BASE_S - fixed_s
    try:
        return int(_BASE.replace(tzinfo=zoneinfo.ZoneInfo(zone)).timestamp())
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnsupportedError(
            "an ORC file was written in an unknown time zone: pip install tzdata, or read it with Spark",
            zone=zone,
        ) from error
