"""The options of a stream's writes: what is taken, and what is refused with which sentence."""

from __future__ import annotations

import pytest

from holdfast.commit import SaveMode
from holdfast.errors import InvalidRequestError
from holdfast.options.write import parse_stream_options, parse_write_options

SPARKS_OWN = {"path": "s3://bucket/t", "checkpointlocation": "/ck", "queryname": "q"}


def test_what_spark_adds_is_taken() -> None:
    options = parse_stream_options(
        {**SPARKS_OWN, "StreamID": " flights ", "header": "true", "fileFormat": "csv"}, False
    )
    assert options.stream_id == "flights"
    assert (options.write.mode, options.write.format.name) == (SaveMode.APPEND, "csv")
    assert options.write.format.strings == {"header": "true"}, "readers are told nothing of checkpoints"


def test_output_mode_complete_overwrites() -> None:
    options = parse_stream_options({**SPARKS_OWN, "partitionOverwriteMode": "static"}, True)
    assert (options.write.mode, options.stream_id) == (SaveMode.OVERWRITE, "")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"committer": "magic"}, "would duplicate a batch that Spark repeats: leave the option out"),
        ({"ifExists": "ignore"}, "a stream appends its batches"),
        ({"partitionOverwriteMode": "Dynamic", "partitionBy": "k"}, "a stream appends its batches"),
        ({"streamId": ""}, "not a name"),
        ({"streamId": "a\nb"}, "not a name"),
        ({"streamId": "x" * 201}, "not a name"),
    ],
)
def test_what_is_refused(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        parse_stream_options({**SPARKS_OWN, **given}, False)


def test_a_batch_write_has_no_stream() -> None:
    with pytest.raises(InvalidRequestError, match="unknown option"):
        parse_write_options({"path": "/t", "streamId": "flights"}, False)
