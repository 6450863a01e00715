"""A url at which no table is: what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.spark.options import parse_read_options
from holdfast.spark.reader import infer_schema


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("x.csv", InvalidRequestError, "this is a file: name the directory that holds it"),
        ("*.csv", NotFoundError, "patterns are not followed: name a directory"),
        ("none", NotFoundError, "there is nothing to read: check the url"),
    ],
)
def test_the_error_says_what_is_there(tmp_path: Path, name: str, kind: type[Exception], sentence: str) -> None:
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(kind, match=sentence.replace("*", r"\*")) as caught:
        infer_schema(parse_read_options({"path": str(tmp_path / name)}))
    assert type(caught.value) is kind


def test_a_schema_is_given_to_the_reader() -> None:
    with pytest.raises(InvalidRequestError, match=r"a schema is no option: give it to spark.read"):
        parse_read_options({"path": "x", "schema": "id long"})
