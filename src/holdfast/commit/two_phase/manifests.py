"""Load task manifests in bounded memory: check them before the decision, stream them again after it (HADOOP-16570)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.commit import layout
from holdfast.commit.codec import sha256_hex
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import file_owner
from holdfast.commit.records import JobRecord, ManifestRef, TaskCommit, Totals
from holdfast.commit.two_phase.records import (
    ListRef,
    LogEntry,
    TaskManifest,
    decode_manifest,
    decode_manifest_list,
    encode_manifest_list,
)
from holdfast.errors import InvalidRequestError


@dataclass(slots=True)
class ManifestCache:
    """Caches manifests (up to a limit in bytes) and their list, so that they are not read again after the decision."""

    limit_bytes: int
    listed: tuple[ListRef, Sequence[ManifestRef]] | None = None
    data: dict[str, bytes] = field(default_factory=dict)
    size_bytes: int = 0

    def add(self, key: str, data: bytes) -> None:
        """Cache a manifest unless the cache is full."""
        if self.size_bytes + len(data) <= self.limit_bytes:
            self.data[key] = data
            self.size_bytes += len(data)

    def drop(self) -> None:
        """Drop all cached manifests; the list of manifests stays cached."""
        self.data.clear()
        self.size_bytes = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedOutput:
    """A job's output, checked and ready for the decision.

    Attributes:
        refs: references to the manifests that count, in order of tasks.
        partitions: directories that the job writes to (``""`` for the destination itself).
        chosen: maps the path of each file whose name the caller chose to its counts. Other jobs may use these names
            too.
    """

    refs: Sequence[ManifestRef]
    totals: Totals
    partitions: frozenset[str]
    chosen: Mapping[str, Totals]
    cache: ManifestCache


def _load_manifest(ctx: CommitContext, ref: ManifestRef, data: bytes | None) -> tuple[ManifestRef, bytes, TaskManifest]:
    data = ctx.store.get(ctx.key(ref.key)) if data is None else data
    return ref, data, decode_manifest(ref, data)


def prepare_job_output(ctx: CommitContext, job: JobRecord, commits: Sequence[TaskCommit]) -> PreparedOutput:
    """Load and check every manifest of a job before its decision.

    Ensures: digests match, no two files have the same target, and every file belongs to the attempt that reported it.

    Raises:
        CorruptDataError: a manifest differs from the one that its task reported.
        InvalidRequestError: two files have the same target. The job is undecided.
    """
    cache = ManifestCache(ctx.settings.manifest_cache_bytes)
    totals = Totals()
    partitions: set[str] = set()
    chosen: dict[str, Totals] = {}
    all_inline = all(commit.inline is not None for commit in commits)
    run = map if all_inline else ctx.runner.map  # threads help only if the store has to be waited for
    loads = run(lambda commit: _load_manifest(ctx, _require_manifest_ref(commit), commit.manifest_data()), commits)
    for done, (ref, data, manifest) in enumerate(loads, start=1):
        cache.add(ref.key, data)
        totals += ref.totals
        # Generated names contain the attempt's id, so they can clash only within one manifest.
        seen: set[str] = set()
        for file in manifest.files:
            if file.path in seen or file.path in chosen:
                raise InvalidRequestError(
                    "two files of the job have the same target: put the partition's number into the names",
                    path=file.path,
                )
            seen.add(file.path)
            partitions.add(file.path.rpartition("/")[0])
            if file_owner(file.path) is None:
                chosen[file.path] = Totals(files=1, size_bytes=file.size_bytes, rows=file.rows)
        ctx.progress("manifests", done, len(commits))
    return PreparedOutput(
        refs=[_require_manifest_ref(commit) for commit in commits],
        totals=totals,
        partitions=frozenset(partitions),
        chosen=chosen,
        cache=cache,
    )


def _require_manifest_ref(commit: TaskCommit) -> ManifestRef:
    if commit.ref is None:
        raise InvalidRequestError("a task reported no manifest: use one committer for tasks and job", task=commit.task)
    return commit.ref


def build_manifest_list(job: JobRecord, prepared: PreparedOutput, token: str) -> tuple[ListRef, bytes]:
    """Return the list of the job's manifests, and the reference to it for the job's decision."""
    data = encode_manifest_list(prepared.refs)
    ref = ListRef(key=layout.committed_list_path(job.job, token), sha256=sha256_hex(data), count=len(prepared.refs))
    prepared.cache.listed = (ref, prepared.refs)
    return ref, data


def load_manifest_list(ctx: CommitContext, ref: ListRef, cache: ManifestCache | None) -> Sequence[ManifestRef]:
    """Return the list of manifests to which a decision refers, from the cache or from the store."""
    # Another driver of the job may have decided it with a different list, so compare keys and digests.
    if cache is not None and cache.listed is not None and cache.listed[0] == ref:
        return cache.listed[1]
    return list(decode_manifest_list(ref, ctx.store.get(ctx.key(ref.key))))


def iter_manifests(
    ctx: CommitContext, refs: Sequence[ManifestRef], cache: ManifestCache | None
) -> Iterator[TaskManifest]:
    """Load the manifests to which `refs` refer, in the given order."""
    cached = cache.data if cache is not None else {}
    run = map if all(ref.key in cached for ref in refs) else ctx.runner.map  # threads only help with waiting
    for _ref, _data, manifest in run(lambda ref: _load_manifest(ctx, ref, cached.get(ref.key)), refs):
        yield manifest


def iter_committed_manifests(
    ctx: CommitContext, entry: LogEntry, cache: ManifestCache | None = None
) -> Iterator[TaskManifest]:
    """Iterate over the manifests of a commit decision, in order of tasks.

    Raises:
        NotFoundError: a manifest, or the list of manifests, is missing.
    """
    assert entry.manifests is not None  # decode_entry checked it
    return iter_manifests(ctx, load_manifest_list(ctx, entry.manifests, cache), cache)
