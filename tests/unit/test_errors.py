"""Error messages have one form, and errors survive the trip between Spark's processes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from holdfast import errors
from holdfast.errors import HoldfastError, InvalidRequestError, NotFoundError

CLASSES = [
    found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, errors.HoldfastError)
]


def test_the_variables_come_last_and_quoted() -> None:
    error = NotFoundError("no such bucket: create it or check the url", bucket="a b", tries=3)
    assert str(error) == "no such bucket: create it or check the url bucket='a b' tries=3"
    assert error.message == "no such bucket: create it or check the url"
    assert error.variables == {"bucket": "a b", "tries": 3}


def test_a_message_without_variables_stands_alone() -> None:
    assert str(HoldfastError("the job was stopped")) == "the job was stopped"


def test_a_variable_may_be_called_message() -> None:
    assert str(HoldfastError("refused", message="x")) == "refused message='x'"


def test_an_invalid_request_is_a_value_error() -> None:
    """Callers who know nothing of Holdfast catch what they always catch for a bad argument."""
    with pytest.raises(ValueError, match="fix the call"):
        raise InvalidRequestError("fix the call")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_pickling_keeps_class_message_and_variables(cls: type[HoldfastError], protocol: int) -> None:
    error = cls("somebody moved first: start again", key="a/ü", size_bytes=5, path=None)
    copy = pickle.loads(pickle.dumps(error, protocol))
    assert type(copy) is cls
    assert (copy.message, copy.variables, str(copy)) == (error.message, error.variables, str(error))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_cause_is_chained_here_and_stays_behind_when_pickled(cls: type[HoldfastError]) -> None:
    """A cause may be another library's error that cannot be pickled: it must not take ours down with it."""

    class UnpicklableError(Exception):
        def __reduce__(self) -> tuple[object, ...]:
            raise TypeError("cannot be pickled")

    with pytest.raises(cls) as caught:
        raise cls("the store is down: repeat later", url="s3://b") from UnpicklableError("socket")
    assert isinstance(caught.value.__cause__, UnpicklableError)
    assert "socket" not in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.__cause__ is None
    assert str(copy) == str(caught.value)


def test_without_pyspark_the_package_says_what_to_install() -> None:
    script = "import sys; sys.modules['pyspark'] = None; from holdfast import write"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert "UnsupportedError: this needs PySpark" in done.stderr
    assert "pip install 'holdfast[spark]'" in done.stderr
