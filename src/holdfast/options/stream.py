"""Parse the options with which a stream writes to a destination."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import InvalidRequestError
from holdfast.options.location import given_options
from holdfast.options.values import as_name
from holdfast.options.write import WRITE_KEYS, WriteOptions, parse_write
from holdfast.stores.given import OptionSource

STREAM_KEYS = (*WRITE_KEYS, "streamId", "checkpointLocation", "queryName")
"""Names of the options that `parse_stream_options` takes, except those of the file format."""


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """The parsed options of a stream's writes.

    Attributes:
        write: the options of each batch.
        stream_id: the stream's name at the destination; empty for the query's id, which is stored in its checkpoint.
    """

    write: WriteOptions
    stream_id: str = ""


def parse_stream_options(options: OptionSource, overwrite: bool) -> StreamOptions:
    """Parse the options of a stream's writes.

    Args:
        options: the options of ``df.writeStream``, including Spark's own ``checkpointLocation`` and ``queryName``.
        overwrite: whether the output mode is ``complete``; the only other mode that Spark allows here is ``append``.

    Raises:
        InvalidRequestError: an option is unknown, invalid or not for streams; the message says how to fix it.
    """
    given = given_options(options, STREAM_KEYS)
    for option, other in (("ifExists", "append"), ("partitionOverwriteMode", "static")):
        if (value := given.take(option, str.lower)) not in (None, other):
            raise InvalidRequestError(
                "a stream appends its batches, or replaces everything in output mode complete: leave the option out",
                option=option,
                value=value,
            )
    write = parse_write(given, overwrite)
    if write.write_id:
        raise InvalidRequestError(
            "a stream identifies its batches by number, and a write id would let only the first one through: use "
            "streamId",
            option="writeId",
        )
    if write.committer != "two_phase":
        raise InvalidRequestError(
            "only two_phase records which batches are committed, another committer would duplicate a batch that Spark "
            "repeats: leave the option out",
            option="committer",
            value=write.committer,
        )
    return StreamOptions(write=write, stream_id=given.take("streamId", as_name) or "")
