"""Reading a destination as a stream: not there, and said in one sentence."""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from holdfast.errors import UnsupportedError
from holdfast.spark.failures import one_sentence

__all__ = ["NoStreamReader"]


class NoStreamReader(DataSourceStreamReader):
    """Refuses at the first question of a query, new or restarted.

    Making it does not: PySpark's worker stops a reader that it could not make, and tells of that trouble instead.
    """

    def initialOffset(self) -> NoReturn:
        """Asked by a new query."""
        _refuse()

    def latestOffset(self, *limits: Any) -> NoReturn:
        """Asked by every query."""
        _refuse()

    def read(self, partition: Any) -> NoReturn:
        """Never asked: there are no partitions without offsets."""
        _refuse()


def _refuse() -> NoReturn:
    with one_sentence():
        raise UnsupportedError(
            "a destination cannot be read as a stream: call holdfast.read, which gives what is there at the time"
        )
