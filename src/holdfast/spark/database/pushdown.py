"""Let a query's own conditions on the names of rows narrow a read. Opt-in, for the reason in docs/decisions/0018."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from pyspark.sql.types import BinaryType, DataType, StringType

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import Part
from holdfast.spark.database.reader import DatabaseReader
from holdfast.spark.database.values import is_integer_type

_OPERATORS: Mapping[type[Filter], str] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    StringStartsWith: "starts",
}


class PushingDatabaseReader(DatabaseReader):
    """A scan that Spark may restrict by the conditions of one query."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # PySpark's name
        """Apply the conditions on the row's name, or its first part; return those that Spark must still apply."""
        return [one for one in filters if not self._apply(one)]

    def _apply(self, one: Filter) -> bool:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        if len(attribute) != 1 or self._row_columns.get(attribute[0], -1) not in (None, 0):
            return False
        if isinstance(one, IsNotNull):
            return True  # every row has a name
        operator = _OPERATORS.get(type(one))
        part = _part(getattr(one, "value", None), self._spark_schema[attribute[0]].dataType)
        if operator is None or part is None:
            return False
        try:
            self.narrow(self.bounds.within(operator, part))
        except InvalidRequestError:
            return False  # no row has such a name; Spark finds none either
        return True


def _part(value: object, kind: DataType) -> Part | None:
    """Return the value of a condition as a part of a row's name, None if Spark compares it in another way."""
    if isinstance(value, str) and kind == StringType():
        return value
    if isinstance(value, bytes | bytearray) and isinstance(kind, BinaryType):
        return bytes(value)
    if isinstance(value, int) and not isinstance(value, bool) and is_integer_type(kind):
        return value
    return None
