"""Tables of Spark's catalog, which a Python source cannot have.

Spark keeps a table's place and options in its catalog, and hands them to a Python source when the table is made, but
not when it is read or written: the reader of ``SELECT * FROM t`` and the writer of ``INSERT INTO t`` get no options at
all (seen with PySpark 4.3). So a table could be made and never be used; it is refused where Spark lets us see that one
is being made. ``CREATE TABLE t (columns) USING holdfast`` does not call us.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark import TaskContext

from holdfast.errors import InvalidRequestError, UnsupportedError

__all__ = ["refuse_table", "refuse_table_properties", "require_path"]

_WHY = "Spark does not tell a Python source where a table of its catalog is"
_INSTEAD = "write with save(path) or holdfast.write, and CREATE TEMPORARY VIEW for a name in SQL"

_TABLE_PROPERTIES = {"provider", "owner"}  # reserved ones, which every table of a catalog has
# Of an execution, and of the outermost one around it: statements that make a table and fill it are two.
_EXECUTION = "spark.sql.execution.id"
_ROOT = "spark.sql.execution.root.id"
_STREAM = "sql.streaming.queryId"  # in foreachBatch the stream is around the batch's own writes


def refuse_table_properties(options: Iterable[str]) -> None:
    """When Spark asks for a schema, its options tell whether it is for the catalog.

    Raises:
        UnsupportedError: a table is being made.
    """
    if {name.lower() for name in options} >= _TABLE_PROPERTIES:
        raise UnsupportedError(f"{_WHY}, so it could not be read: {_INSTEAD}")


def refuse_table(context: TaskContext) -> None:
    """The writer gets the options of ``saveAsTable`` as if it were ``save``; only its tasks can tell them apart.

    Raises:
        UnsupportedError: a table is being made.
    """
    own, root = context.getLocalProperty(_EXECUTION), context.getLocalProperty(_ROOT)
    if None not in (own, root) and own != root and context.getLocalProperty(_STREAM) is None:
        raise UnsupportedError(f"{_WHY}, so it could not be read: {_INSTEAD}")


def require_path(options: Mapping[str, str]) -> None:
    """A table of the catalog has no options when it is read or written.

    Raises:
        InvalidRequestError: there is no path.
    """
    if not any(name.lower() in ("path", "paths") for name in options):
        raise InvalidRequestError(
            f"no destination was given: pass it to save() or load(), or as the option path; {_WHY}"
        )
