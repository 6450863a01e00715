"""One sentence on the way to the driver, and the typed error again from what Spark says."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from holdfast.errors import DestinationExistsError, InvalidRequestError, UnavailableError, UnsupportedError
from holdfast.spark.failures import find_holdfast_error, one_sentence


def test_the_cause_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # put back at the end
    failure = UnavailableError("the store is away: try later")
    failure.__cause__ = OSError("page of noise")
    with pytest.raises(UnavailableError) as caught, one_sentence():
        raise failure
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_other_errors_keep_their_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")  # put back at the end
    with pytest.raises(ZeroDivisionError) as caught, one_sentence():
        _ = 1 / 0
    assert not caught.value.__suppress_context__


def test_our_error_is_found_in_what_spark_says() -> None:
    text = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to initialize Python data source writer: "
        "holdfast.errors.DestinationExistsError: the destination holds data url='file:///x'\n SQLSTATE: 38000"
    )
    found = find_holdfast_error(RuntimeError(text))
    assert isinstance(found, DestinationExistsError)
    assert str(found) == "the destination holds data url='file:///x'"
    assert find_holdfast_error(RuntimeError("ValueError: no")) is None
    assert find_holdfast_error(RuntimeError("holdfast.errors.NoSuchError: no")) is None
    assert isinstance(find_holdfast_error(RuntimeError("holdfast.errors.InvalidRequestError: no")), InvalidRequestError)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "[X] Failed: Traceback\nModuleNotFoundError: No module named 'holdfast'\n SQLSTATE: 38000",
            "Spark's workers run a Python without holdfast: set PYSPARK_PYTHON",
        ),
        (
            "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run",
            "Spark's workers run another Python version than the driver: set PYSPARK_PYTHON",
        ),
    ],
)
def test_workers_that_cannot_run_ours_are_a_sentence(said: str, sentence: str) -> None:
    found = find_holdfast_error(RuntimeError(said))
    assert isinstance(found, UnsupportedError)
    assert str(found).startswith(sentence)


def test_a_module_that_the_users_own_code_lacks_is_not_ours_to_explain() -> None:
    assert find_holdfast_error(RuntimeError("Traceback\nModuleNotFoundError: No module named 'pandas'")) is None
