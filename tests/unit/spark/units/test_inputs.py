"""Which rows a task gets: each once, and a pair of an RDD in the same task in every process."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

import pyarrow as pa
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from holdfast.errors import InvalidRequestError
from holdfast.records.row_keys import encode_row
from holdfast.spark.units import inputs
from holdfast.spark.units.inputs import _add_ids_to_pairs, parse_input

_TASK_OF_KEY = {"apple": 2, "": 1, 7: 1, -1: 1, b"apple": 1, ("apple", 7): 4}
"""Of five: the checksum of the key's bytes says it (CRC-32), in this and every later version: or a job that goes on
would do units twice."""


class _Pairs:
    """An RDD that tells how it is asked to divide its pairs; the names are those of PySpark."""

    context = SimpleNamespace(defaultParallelism=3)

    def mapPartitions(self, _function: object) -> _Pairs:
        return self

    def repartitionAndSortWithinPartitions(self, tasks: int, task_of: Callable[[bytes], int]) -> _Pairs:
        self.tasks, self.task_of = tasks, task_of
        return self


def test_the_task_of_a_key_never_changes() -> None:
    pairs: Any = _Pairs()
    parse_input(pairs, None).arranged(5)
    assert pairs.tasks == 5
    assert {key: pairs.task_of(encode_row(key)) % pairs.tasks for key in _TASK_OF_KEY} == _TASK_OF_KEY


@pytest.mark.parametrize("value", [Lock(), (part for part in "ab")], ids=["lock", "generator"])
def test_a_value_that_cannot_be_copied_is_refused_with_its_key(value: object) -> None:
    with pytest.raises(InvalidRequestError, match=r"the value of a unit cannot be copied.*unit='a'"):
        list(_add_ids_to_pairs([("a", value)]))


def test_values_that_can_be_copied_stay_as_they_are() -> None:
    pairs = [(("a", 1), [1]), (7, {"b": b"c"}), ("", None)]
    assert list(_add_ids_to_pairs(pairs)) == [(encode_row(key), (key, value)) for key, value in pairs]


def test_each_row_of_a_batch_comes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark Connect gives batches, which become rows some at a time."""
    monkeypatch.setattr(inputs, "_TABLE_ROWS", 2)
    schema = StructType([StructField("n", LongType())])
    for rows in (0, 1, 2, 3, 5):
        batch = pa.record_batch([pa.array(range(rows), pa.int64())], names=["n"])
        assert [row.n for row in inputs._convert_batches_to_rows([batch], schema)] == list(range(rows))


@pytest.mark.parametrize("names", [["b", "a"], ["a"], ["a", "b", "c"]])
def test_values_do_not_come_under_the_names_of_other_columns(names: list[str]) -> None:
    """The table may be replaced while a job of Spark Connect runs."""
    schema = StructType([StructField("a", LongType()), StructField("b", LongType())])
    batch = pa.record_batch([pa.array([1], pa.int64()) for _ in names], names=names)
    with pytest.raises(InvalidRequestError, match=r"other columns than when the run began.*run the job again"):
        list(inputs._convert_batches_to_rows([batch], schema))


def test_nor_do_the_fields_of_their_structs() -> None:
    """Spark finds the fields of a struct by name: one that was renamed would be None."""
    inner = StructType([StructField("e", LongType())])
    of_list = StructType([StructField("c", LongType()), StructField("d", MapType(StringType(), inner))])
    of_column = StructType([StructField("a", LongType()), StructField("b", ArrayType(of_list))])
    schema = StructType([StructField("s", of_column)])
    e = pa.struct([("e", pa.int64())])
    b = pa.list_(pa.struct([("c", pa.int64()), ("d", pa.map_(pa.string(), e))]))
    same = pa.struct([("a", pa.int64()), ("b", b)])
    value = {"a": 1, "b": [{"c": 2, "d": [("k", {"e": 3})]}]}
    (row,) = inputs._convert_batches_to_rows([pa.record_batch([pa.array([value], same)], names=["s"])], schema)
    assert row.s.b[0].d["k"].e == 3
    renamed_at_once = pa.struct([("x", pa.int64()), ("b", b)])
    other = pa.struct([("x", pa.int64())])
    renamed_in_map = pa.struct([("a", pa.int64()), ("b", _replaced(b, ("d", pa.map_(pa.string(), other))))])
    renamed_in_list = pa.struct([("a", pa.int64()), ("b", _replaced(b, ("x", pa.map_(pa.string(), e))))])
    for found in (renamed_at_once, renamed_in_map, renamed_in_list, pa.int64(), pa.struct([("a", pa.int64())])):
        with pytest.raises(InvalidRequestError, match="run the job again"):
            list(inputs._convert_batches_to_rows([pa.record_batch([pa.nulls(1, found)], names=["s"])], schema))


def _replaced(of: pa.ListType, second: tuple[str, pa.DataType]) -> pa.DataType:
    return pa.list_(pa.struct([of.value_type.field(0), second]))
