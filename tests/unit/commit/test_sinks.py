"""Check when and how sinks report that all bytes of a file are uploaded."""

from __future__ import annotations

import pytest

from holdfast.commit import TWO_PHASE
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import PartBufferBudget, UploadSink
from holdfast.errors import InvalidRequestError
from holdfast.runtime import BackgroundExecutor, InlineExecutor, ThreadExecutor
from holdfast.stores.base import MultipartLimits
from holdfast.stores.memory import MemoryStore
from tests.simulation.world import World, start


def sink_on(store: MemoryStore, background: BackgroundExecutor, told: list[FileEntry]) -> UploadSink:
    return UploadSink(
        store,
        "t/a",
        "a",
        background=background,
        budget=PartBufferBudget(1 << 20),
        base_part_bytes=4,
        metadata={},
        on_uploaded=told.append,
    )


@pytest.mark.parametrize("pieces", [[], [b"x"], [b"abcd"], [b"abcd" * 5], [b"abcdefg", b"hi"]])
@pytest.mark.parametrize("threads", [0, 4])
def test_the_end_of_an_upload_is_told_once_and_whole(pieces: list[bytes], threads: int) -> None:
    store = MemoryStore(limits=MultipartLimits(min_part_size_bytes=1))
    background: BackgroundExecutor = ThreadExecutor(threads) if threads else InlineExecutor()
    told: list[FileEntry] = []
    sink = sink_on(store, background, told)
    for piece in pieces:
        sink.write(piece)
    background.drain()
    assert told == [], "a file that is open is not whole"
    sink.close()
    sink.close()
    background.drain()
    background.close()
    content = b"".join(pieces)
    assert [entry.size_bytes for entry in told] == [len(content)]
    assert told[0].parts == sink.entry(0).parts and len(told[0].parts) == max(1, -(-len(content) // 4))


def test_nobody_is_told_of_a_file_that_was_dropped() -> None:
    told: list[FileEntry] = []
    sink = sink_on(MemoryStore(limits=MultipartLimits(min_part_size_bytes=1)), InlineExecutor(), told)
    sink.write(b"abcdefgh")
    sink.discard()
    sink.close()
    assert told == []


def test_a_file_that_has_ended_takes_no_more_bytes() -> None:
    """Not after its attempt has committed either, when nobody would report them."""
    world = World("upload")
    with TWO_PHASE.setup_task(world.context(), start(world.context()), 0) as attempt:
        sink = attempt.open(attempt.file_name(".txt"))
        sink.write(b"first")
        attempt.commit()
    with pytest.raises(InvalidRequestError, match="open another"):
        sink.write(b"second part of the data")
