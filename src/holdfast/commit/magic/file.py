"""Write a file to a magic path, as a pending upload to the final path, an empty marker, and the upload's record.

Source: paper 000, VI.A ("When a magic output stream is closed …"); paper 001, "A new/modified output stream for delayed
PUT commits"; HADOOP-17414.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.commit import layout
from holdfast.commit.context import CommitContext
from holdfast.commit.hadoop.magic_path import MARKER_LENGTH, final_path, is_magic, is_pending, pending_path
from holdfast.commit.hadoop.pending import SinglePending, decode_pending, encode_pending
from holdfast.commit.hadoop.uri import encode_uri
from holdfast.commit.ids import JobId
from holdfast.commit.magic.layout import path_owner
from holdfast.commit.measure import Measure
from holdfast.commit.pending_sets.completion import bucket_name, etags_of, pending_of_entry
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import PartBudget, UploadSink
from holdfast.commit.uploads import ATTEMPT_METADATA
from holdfast.errors import InvalidRequestError
from holdfast.runtime import BackgroundExecutor
from holdfast.stores.base import iter_objects, multipart


def open_magic_file(measure: Measure, path: str, *, background: BackgroundExecutor, budget: PartBudget) -> UploadSink:
    """Open a sink for the file whose final path the magic `path` encodes.

    Guarantee: nothing becomes visible. When the sink is closed and all parts are uploaded, exactly two objects are put:
    an empty marker at `path`, for programs that check the file they have written, and then the upload's record next to
    it. No other request is made (scenario 70).

    Args:
        path: a magic path, relative to the destination.

    Raises:
        InvalidRequestError: the path is not magic, or its final path is hidden or outside the destination.

    Crash: if the record was not written yet, the upload is pending without a record. It is aborted with its job if the
    file's name carries the job's id; if not, ``holdfast uploads abort`` aborts it.
    """
    final = final_path(path)
    if not is_magic(path) or is_pending(path) or final == path or not layout.is_safe_path(final):
        raise InvalidRequestError(
            "a magic path stands for a file of the destination whose name does not start with '_' or '.': rename it",
            path=path,
        )
    ctx, owner = measure.ctx, path_owner(path)

    def save(file: FileEntry) -> None:
        length = {MARKER_LENGTH: str(file.size_bytes)} if ctx.store.capabilities.metadata else None
        ctx.store.put(ctx.key(path), b"", metadata=length)
        measure.recorder.count("committer_magic_marker_put")
        pending = pending_of_entry(ctx, file, owner, uri=encode_uri(ctx.url, path))
        ctx.store.put(ctx.key(pending_path(path)), encode_pending(pending, etags_of(ctx)))
        measure.recorder.count("committer_commits_created")

    measure.recorder.count("committer_magic_files_created")
    return UploadSink(
        multipart(ctx.store),
        ctx.key(final),
        final,
        background=background,
        budget=budget,
        base_part_bytes=ctx.settings.part_size_bytes,
        metadata={} if owner is None else {ATTEMPT_METADATA: owner.attempt},
        on_uploaded=save,
    )


def iter_pending_paths(ctx: CommitContext, directory: str) -> Iterator[str]:
    """List the paths of the upload records below `directory`, relative to the destination."""
    for info in iter_objects(ctx.store, ctx.key(f"{directory}/")):
        if is_pending(info.key):
            yield info.key[len(ctx.prefix) :]


def load_pending(measure: Measure, job: JobId, path: str) -> SinglePending:
    """Load one upload record and check that its file lies in this destination. Sends one request.

    Raises:
        CorruptDataError: the record cannot be parsed, or belongs to another job.
        NotFoundError: the record does not exist.
    """
    ctx = measure.ctx
    with measure.recorder.timed("committer_load_single_pending_file"):
        data = ctx.store.get(ctx.key(path))
        return decode_pending(path, data, bucket=bucket_name(ctx.url), prefix=ctx.prefix, job_id=job)
