"""Formats are registered with a session of Spark Connect once; the server would log a warning each other time."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.spark.session import register, register_during_call


class FakeSession:
    """What a session of Spark Connect is to `register`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.conf: dict[str, str] = Settings()
        self.dataSource = self

    def register(self, source: Any) -> None:
        self.names.append(source.name())


class Settings(dict[str, str]):
    set = dict.__setitem__


def test_a_session_of_spark_connect_is_registered_with_once() -> None:
    first, second = FakeSession(), FakeSession()
    for session in (first, first, second):
        register(session)  # type: ignore[arg-type]  # a fake
        with register_during_call(session):  # type: ignore[arg-type]  # a fake
            pass
    assert first.names == second.names == ["holdfast", "holdfast-database"]
