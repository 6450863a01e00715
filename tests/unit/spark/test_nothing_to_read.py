"""A url at which no table is: what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from holdfast.commit import TWO_PHASE, SaveMode, open_context
from holdfast.errors import InvalidRequestError, NotFoundError
from holdfast.options.read import parse_read_options
from holdfast.spark.reader import infer_schema


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("x.csv", InvalidRequestError, "this is a file: name the directory that holds it"),
        ("*.csv", NotFoundError, "patterns are not supported: name a directory"),
        ("none", NotFoundError, "there is nothing to read: check the URL"),
    ],
)
def test_the_error_says_what_is_there(tmp_path: Path, name: str, kind: type[Exception], sentence: str) -> None:
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(kind, match=sentence.replace("*", r"\*")) as caught:
        infer_schema(parse_read_options({"path": str(tmp_path / name)}))
    assert type(caught.value) is kind


def test_a_folder_of_a_destination_is_no_table(tmp_path: Path) -> None:
    ctx = open_context(str(tmp_path / "t"))
    job = TWO_PHASE.setup_job(ctx, SaveMode.APPEND)
    assert job is not None
    with TWO_PHASE.setup_task(ctx, job, 0) as attempt:
        attempt.open(f"k=1/{attempt.file_name('.csv')}").write(b"1,2\n")
        commit = attempt.commit()
    TWO_PHASE.commit_job(ctx, job, [commit], 1)
    ctx.close()
    with pytest.raises(InvalidRequestError, match=r"this is a folder inside a destination.*destination='file://.*/t'"):
        infer_schema(parse_read_options({"path": str(tmp_path / "t/k=1")}))
    assert infer_schema(parse_read_options({"path": str(tmp_path / "t")})).names == ["_c0", "_c1", "k"]


def test_a_schema_is_given_to_the_reader() -> None:
    with pytest.raises(InvalidRequestError, match=r"a schema is not an option: pass it to spark.read"):
        parse_read_options({"path": "x", "schema": "id long"})
