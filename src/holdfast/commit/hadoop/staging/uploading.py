"""Upload a task's staged files as pending uploads, in parallel and in parts; all of them or none.

Source: paper 000, VI.1 (``uploadFileToPendingCommit``) and XIV.B.3 (HADOOP-15961: progress during the upload).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.commit.context import CommitContext, Measure
from holdfast.commit.hadoop.completion import abort_all, pending_of_entry
from holdfast.commit.hadoop.pending import SinglePending
from holdfast.commit.hadoop.staging.layout import scratch_context, scratch_dir
from holdfast.commit.hadoop.uri import encode_uri
from holdfast.commit.ids import FileOwner, JobId
from holdfast.commit.records import FileEntry
from holdfast.commit.sinks import part_size
from holdfast.commit.task import ATTEMPT_METADATA
from holdfast.errors import CorruptDataError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from holdfast.stores.base import MultipartStore, Part, multipart

_ATTEMPTS = 3


def unique_path(path: str, job: JobId) -> str:
    """Return `path` with the job id in its last segment, before the first dot: ``a/b-<job>.tar.gz``. Idempotent."""
    directory, slash, name = path.rpartition("/")
    if job in name:
        return path
    stem, dot, extension = name.partition(".")
    return f"{directory}{slash}{stem}-{job}{dot}{extension}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a file: `size_bytes` bytes, starting at `start`."""

    file: int
    number: int
    start: int
    size_bytes: int


def _pieces(ctx: CommitContext, index: int, file: FileEntry) -> Iterator[_Piece]:
    """Split a file into parts; an empty file has one empty part (scenario 2).

    Raises:
        InvalidRequestError: there are more parts than the store allows (scenario 71).
    """
    limits = multipart(ctx.store).capabilities.multipart
    assert limits is not None  # `multipart` checked it
    base_bytes = max(ctx.settings.part_size_bytes, limits.min_part_size_bytes)
    start = number = 0
    while start < file.size_bytes or not number:
        if number == limits.max_parts:
            raise InvalidRequestError(
                "a file needs more parts than the store allows: raise the part size or write smaller files",
                path=file.path,
                bytes=file.size_bytes,
                parts=limits.max_parts,
            )
        size = min(part_size(number, base_bytes), file.size_bytes - start)
        number += 1
        yield _Piece(index, number, start, size)
        start += size


def _batches(pieces: Sequence[_Piece], limit_bytes: int) -> Iterator[list[_Piece]]:
    """Group pieces into batches that fit into memory together; each batch has at least one piece."""
    batch: list[_Piece] = []
    held_bytes = 0
    for piece in pieces:
        if batch and held_bytes + piece.size_bytes > limit_bytes:
            yield batch
            batch, held_bytes = [], 0
        batch.append(piece)
        held_bytes += piece.size_bytes
    if batch:
        yield batch


def upload_files(measure: Measure, owner: FileOwner, files: Sequence[FileEntry]) -> list[SinglePending]:
    """Upload an attempt's files as pending uploads to their final names.

    Guarantee: either all files are uploaded, or every upload that was started is aborted, as far as possible, and the
    first error is raised, even if the abort fails too (scenarios 12 to 15).
    Memory: parts of at most ``part_buffer_bytes``. Progress is reported for every part.

    Args:
        files: the entries that the attempt's sinks reported. Each path is relative to the attempt's scratch directory.

    Raises:
        NotFoundError: a file does not exist on this machine (scenario 68).
        CorruptDataError: a file has become shorter.
        InvalidRequestError: a file has too many parts; nothing was uploaded.

    Crash: uploads are pending that no record names. If their file names contain the job id, they are aborted with the
    job.
    """
    ctx = measure.ctx
    pieces = [piece for index, file in enumerate(files) for piece in _pieces(ctx, index, file)]
    targets = [_target(ctx, owner.job, file) for file in files]
    if len(set(targets)) < len(targets):
        raise InvalidRequestError("two files of the attempt have the same target: rename one", job=owner.job)
    run = _Run(measure, owner, files, targets, multipart(ctx.store), started={}, parts=[{} for _ in files])
    try:
        for _started in ctx.runner.map(run.start, range(len(files))):
            pass
        done = 0
        for batch in _batches(pieces, ctx.settings.part_buffer_bytes):
            for _part in ctx.runner.map(run.upload, batch):
                done += 1
                ctx.progress("upload", done, len(pieces))
    except Exception:
        abort_all(measure, [run.pending(index) for index in sorted(run.started)])
        raise
    return [run.pending(index) for index in range(len(files))]


def _target(ctx: CommitContext, job: JobId, file: FileEntry) -> str:
    return unique_path(file.path, job) if ctx.settings.hadoop.unique_filenames else file.path


@dataclass(slots=True)
class _Run:
    """The progress of `upload_files`. No two workers write to the same entry of `started` or `parts`."""

    measure: Measure
    owner: FileOwner
    files: Sequence[FileEntry]
    targets: Sequence[str]
    store: MultipartStore
    started: dict[int, str]
    parts: list[dict[int, Part]]

    def start(self, index: int) -> None:
        metadata = {ATTEMPT_METADATA: self.owner.attempt}
        self.started[index] = self.store.create_upload(self._key(index), metadata)

    def _key(self, index: int) -> str:
        return self.measure.ctx.key(self.targets[index])

    def upload(self, piece: _Piece) -> None:
        with self.measure.recorder.timed("committer_stage_file_upload"):
            part = self._upload(piece, self._read(piece))
        self.parts[piece.file][piece.number] = part

    def _read(self, piece: _Piece) -> bytes:
        file = self.files[piece.file]
        scratch = scratch_context(self.measure.ctx)
        key = scratch.key(f"{scratch_dir(self.owner.job, self.owner)}/{file.path}")
        data = scratch.store.get(key, piece.start, piece.size_bytes)
        if len(data) != piece.size_bytes:
            raise CorruptDataError(
                "a staged file has become shorter, so another process changed it: run the task again", key=key
            )
        return data

    def _upload(self, piece: _Piece, data: bytes) -> Part:
        key, upload_id = self._key(piece.file), self.started[piece.file]
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.measure.ctx.clock.sleep(0.2 * 2**attempt)
            try:
                return self.store.upload_part(key, upload_id, piece.number, data)
            except (UnavailableError, OutcomeUnknownError):  # retry: uploading a part again replaces it
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the last try returns or raises")

    def pending(self, index: int) -> SinglePending:
        numbered = self.parts[index]
        file = replace(
            self.files[index],
            path=self.targets[index],
            upload_id=self.started[index],
            parts=tuple((numbered[number].etag, numbered[number].size_bytes) for number in sorted(numbered)),
        )
        ctx = self.measure.ctx
        return pending_of_entry(ctx, file, self.owner, uri=encode_uri(ctx.url, file.path))
