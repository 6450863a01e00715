"""Refuse to read a destination as a stream, in one sentence."""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from holdfast.errors import UnsupportedError
from holdfast.spark.failures import one_sentence

__all__ = ["NoStreamReader"]


class NoStreamReader(DataSourceStreamReader):
    """Refuses when a query, new or restarted, calls it first.

    The constructor does not refuse: if it fails, PySpark's worker stops the missing reader and reports that instead.
    """

    def initialOffset(self) -> NoReturn:
        """Refuse. Called by a new query."""
        _refuse()

    def latestOffset(self, *limits: Any) -> NoReturn:
        """Refuse. Called by every query."""
        _refuse()

    def read(self, partition: Any) -> NoReturn:
        """Refuse. Never called, since there are no offsets."""
        _refuse()


def _refuse() -> NoReturn:
    with one_sentence():
        raise UnsupportedError(
            "a destination cannot be read as a stream: call holdfast.read, which returns the data of that moment"
        )
