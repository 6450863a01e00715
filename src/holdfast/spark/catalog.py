"""Refuse tables of Spark's catalog, which a Python data source does not support.

Spark stores a table's location and options in its catalog and passes them to a Python source when the table is created,
but not when it is read or written: the reader of ``SELECT * FROM t`` and the writer of ``INSERT INTO t`` get no options
at all (observed with PySpark 4.3). Such a table could be created but never used. So its creation is refused where it
can be detected. ``CREATE TABLE t (columns) USING holdfast`` does not call the data source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark import TaskContext

from holdfast.errors import InvalidRequestError, UnsupportedError

_WHY = "Spark does not tell a Python source where a table of its catalog is stored"
_INSTEAD = (
    "write with save(path) or holdfast.write, or with save() to a table of a store, and CREATE TEMPORARY VIEW for a "
    "name in SQL"
)

_TABLE_PROPERTIES = {"provider", "owner"}  # reserved properties, which every table of a catalog has
# The ids of the current and the outermost SQL execution; they differ in a statement that creates and fills a table.
_EXECUTION = "spark.sql.execution.id"
_ROOT = "spark.sql.execution.root.id"
_STREAM = "sql.streaming.queryId"  # in foreachBatch, the batch's own writes run inside the stream


def refuse_table_properties(options: Iterable[str]) -> None:
    """Refuse a catalog table when Spark asks for its schema, because the options then contain catalog properties.

    Raises:
        UnsupportedError: a table is being created.
    """
    if {name.lower() for name in options} >= _TABLE_PROPERTIES:
        raise UnsupportedError(f"{_WHY}, so it could not be read: {_INSTEAD}")


def refuse_table(context: TaskContext) -> None:
    """Refuse ``saveAsTable``. Its writer gets the same options as that of ``save``; only tasks can tell the two apart.

    Raises:
        UnsupportedError: a table is being created.
    """
    own, root = context.getLocalProperty(_EXECUTION), context.getLocalProperty(_ROOT)
    if None not in (own, root) and own != root and context.getLocalProperty(_STREAM) is None:
        raise UnsupportedError(f"{_WHY}, so it could not be read: {_INSTEAD}")


def require_path(options: Mapping[str, str]) -> None:
    """Check that the options contain a path; for a catalog table, Spark passes no options.

    Raises:
        InvalidRequestError: there is no path.
    """
    if not any(name.lower() in ("path", "paths") for name in options):
        raise InvalidRequestError(
            f"no destination was given: pass it to save() or load(), or as the option path; {_WHY}"
        )
