"""Refuse to read a destination as a stream, with a one-sentence error."""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from holdfast.errors import UnsupportedError
from holdfast.spark.failures import one_sentence


class NoStreamReader(DataSourceStreamReader):
    """A reader that raises an error at the first call of a new or restarted query.

    The constructor does not raise it: if the constructor fails, PySpark's worker tries to stop the missing reader and
    reports that failure instead.
    """

    def initialOffset(self) -> NoReturn:
        """Raise the error. Called by a new query."""
        _refuse()

    def latestOffset(self, *limits: Any) -> NoReturn:
        """Raise the error. Called by every query."""
        _refuse()

    def read(self, partition: Any) -> NoReturn:
        """Raise the error. Never called, since there are no offsets."""
        _refuse()


def _refuse() -> NoReturn:
    with one_sentence():
        raise UnsupportedError(
            "a destination cannot be read as a stream: call holdfast.read, which returns the data of that moment"
        )
