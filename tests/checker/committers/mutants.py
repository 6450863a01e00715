"""Mistakes that a developer might have made in `two_phase`, and the worlds in which the checker has to find them.

A mistake is an edit of shipped functions: a piece of their source and what stands there instead. It is planted in the
function itself, so that everybody who holds the function, under whatever name and in whatever value, runs the mistake.
A piece that is not in the source exactly once is refused: when the code changes, its mutants have to be thought
through again.

`MUTANTS` are found. `REDUNDANT` are not: each breaks a precaution behind which the protocol has a second one, as the
reasons say; together with the second one some of them are mutants.
"""

from __future__ import annotations
import __future__

import inspect
import json
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import cast

from holdfast.checker.committers.actors import OtherJob
from holdfast.checker.committers.cluster import CLUSTER
from holdfast.checker.committers.output import DESTINATION
from holdfast.checker.committers.scenes import SCENES
from holdfast.checker.committers.worlds import Scene, build_world
from holdfast.checker.kernel.calls import Call, Fault
from holdfast.checker.kernel.process import Actor, Port
from holdfast.checker.kernel.world import World
from holdfast.checker.simulated_store import SimulatedStore, StoreResource
from holdfast.commit import SaveMode, TaskCommit, layout, uploads
from holdfast.commit.codec import digest
from holdfast.commit.context import CommitContext
from holdfast.commit.ids import AttemptId, file_name
from holdfast.commit.records import JobRecord, ManifestRef, Totals
from holdfast.commit.task_commits import totals_of
from holdfast.commit.two_phase import (
    decision,
    helping,
    job,
    publication,
    recovery,
    roll_forward,
    snapshot,
)
from holdfast.commit.two_phase.codec import decode_manifest
from holdfast.commit.two_phase.committer import TWO_PHASE, TwoPhaseCommitter
from holdfast.commit.two_phase.live_jobs import OverJobs
from holdfast.stores.base import iter_objects, iter_uploads
from holdfast.versioned_log import RecordStore, VersionedLog

__all__ = ["MUTANTS", "REDUNDANT", "Edit", "Mutant", "listed_commits", "world_of"]


# --- planting ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Edit:
    """One piece of one function, and what stands there instead."""

    function: Callable[..., object]
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mistake.

    Attributes:
        slip: what a developer might have done, in one sentence.
        scene: a world in which it does harm, and which the shipped code leaves unharmed.
        breaks: properties that the checker has to report; of a redundant one none.
        reason: why a redundant one does no harm.
        change: what else is unlike the scene.
    """

    name: str
    slip: str
    edits: tuple[Edit, ...]
    scene: Scene
    breaks: tuple[str, ...] = ()
    reason: str = ""
    change: Callable[[World], World] = lambda world: world

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Run the mistake instead of the shipped code."""
        sources: dict[FunctionType, str] = {}
        for edit in self.edits:
            function = cast("FunctionType", edit.function)
            source = sources.get(function) or textwrap.dedent(inspect.getsource(function))
            found = source.count(edit.before)
            assert found == 1, f"{self.name}: {edit.before!r} is {found} times in {function.__qualname__}"
            sources[function] = source.replace(edit.before, edit.after)
        with ExitStack() as stack:
            for function, source in sources.items():
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = _compiled(function, source)
            yield


def _compiled(function: FunctionType, source: str) -> CodeType:
    found: dict[str, FunctionType] = {}
    name = f"<mutant of {function.__qualname__}>"
    flags = __future__.annotations.compiler_flag
    # With the module's own globals, so that it calls what the module calls; the module keeps its function.
    exec(compile(source, name, "exec", flags=flags, dont_inherit=True), function.__globals__, found)
    return found[function.__name__].__code__


def world_of(mutant: Mutant) -> World:
    """The world of the mutant's scene, with the code as it is at the moment."""
    return mutant.change(build_world(TWO_PHASE, mutant.scene))


def _with_bucket_rule(world: World) -> World:
    """A rule of the bucket aborts pending uploads, at any time: buckets have one for what is left behind."""
    capabilities = cast("StoreResource", world.resources[DESTINATION]).capabilities

    def expire(port: Port) -> None:
        store = SimulatedStore(port, DESTINATION, capabilities)
        for upload in list(iter_uploads(store, "")):
            store.abort_upload(upload.key, upload.upload_id)

    # What actors of jobs can forget, this one has to remember.
    actors = (*world.actors, Actor("bucket rule", expire, mortal=False))
    return _remembering(replace(world, actors=actors))


def _remembering(world: World) -> World:
    """With names of the caller's choice, clean-up reads what it was told before: nothing may be forgotten."""
    return replace(world, remembers=None)


def _other_job_later(world: World) -> World:
    """The other job begins when the driver is dead."""

    def later(actor: Actor) -> Actor:
        def run(port: Port) -> object:
            port.call(Call(CLUSTER, "take_for_dead"))
            return actor.program(port)

        return replace(actor, program=run) if actor.name == "other job" else actor

    return replace(world, actors=tuple(map(later, world.actors)))


def listed_commits(ctx: CommitContext, record: JobRecord) -> list[TaskCommit]:
    """What the tasks of a job have reported, as a listing of its folder tells it: of each task the last manifest."""
    found: dict[int, TaskCommit] = {}
    for info in iter_objects(ctx.store, ctx.key(f"{layout.job_dir(record.job)}attempts/")):
        if info.key.endswith(".jsonl"):
            data = ctx.store.get(info.key)
            header = json.loads(data.splitlines()[0])
            key = info.key.removeprefix(ctx.prefix)
            ref = ManifestRef(key=key, sha256=digest(data), task=header["task"], totals=Totals(files=header["files"]))
            totals = totals_of(decode_manifest(ref, data).files)
            ref = replace(ref, totals=totals)
            attempt = AttemptId(header["attempt"])
            found[ref.task] = TaskCommit(job=record.job, task=ref.task, attempt=attempt, totals=totals, ref=ref)
    return [found[task] for task in sorted(found)]


# --- scenes: those of `scenes`, as small as the mistake allows --------------------------------------------------------
_LONE = Scene(name="lone", summary="one attempt at one task", tasks=1, attempts=1)
_SPECULATION = SCENES["speculation"]
_DRIVER_DIES = replace(
    _LONE,
    name="driver-dies",
    summary="the driver dies between any two calls, and recovery follows",
    recovery=1,
    mortal=("driver",),
    budgets={Fault.CRASH: 1},
)
_TWINS_DRIVER_DIES = replace(_DRIVER_DIES, name="twins-driver-dies", attempts=2)
_TWO_TASKS_DRIVER_DIES = replace(_DRIVER_DIES, name="two-tasks-driver-dies", tasks=2, files=1)
_SECOND_DRIVER = replace(SCENES["second-driver"], files=1)
_SECOND_DRIVER_DEAD = replace(
    SCENES["second-driver"], name="second-driver-dead", mortal=("driver",), budgets={Fault.CRASH: 1}
)
_READER = replace(SCENES["reader"], budgets={}, files=2)
_FAILURE = replace(SCENES["failure"], attempts=1)
_OVERWRITE = SCENES["overwrite"]
_OTHER_JOB = replace(SCENES["other-job"], files=1)
_NEXT_OVERWRITES = replace(
    _LONE,
    name="next-overwrites",
    summary="the driver dies between any two calls, and the next job replaces what is there",
    mode=SaveMode.OVERWRITE,
    others=(OtherJob(),),
    mortal=("driver",),
    budgets={Fault.CRASH: 1},
)
_RENAMES = {"limits": None, "rename": True}
_RENAMES_SECOND_DRIVER = replace(_SECOND_DRIVER, name="renames-second-driver", store=_RENAMES)
_EXPIRING = replace(
    _LONE,
    name="bucket-rule",
    summary="a rule of the bucket aborts pending uploads",
    properties=("C1", "C2", "C3", "C4"),
)

_BARE_PREFIX = Edit(
    publication._list_below,
    "        return list(itertools.islice(iter_uploads(multipart(ctx.store), prefix), left.limit))",
    "        bare = prefix.rstrip('/')\n"
    "        above = iter_uploads(multipart(ctx.store), bare[: bare.rfind('/') + 1])\n"
    "        return [upload for upload in above if upload.key.startswith(bare)]",
)

MUTANTS = (
    # --- the decision -------------------------------------------------------------------------------------------------
    Mutant(
        name="decides-after-publishing",
        slip="The decision is written when the uploads are complete: as if it were the job's report.",
        edits=(
            Edit(
                decision._decide,
                "            found = append_entry(ctx, mine)",
                "            from holdfast.commit.two_phase.roll_forward import _publish_all\n"
                "            _publish_all(ctx, mine, prepared.cache, False)\n"
                "            found = append_entry(ctx, mine)",
            ),
        ),
        scene=_DRIVER_DIES,
        breaks=("C9",),
    ),
    Mutant(
        name="abort-without-entry",
        slip="Abort cleans up and writes nothing into the log: nobody has decided, so there is nothing to record.",
        edits=(Edit(job.abort_job, "found = append_entry(ctx, mine)", "return _drop_fenced(ctx, job)"),),
        scene=_SECOND_DRIVER,
        breaks=("C8",),
    ),
    Mutant(
        name="commit-without-looking",
        slip="Commit does not look whether the log has an entry about its job already.",
        edits=(Edit(job._decide, "entry = find_decision(ctx, view, job.job, job.base_seq)", "entry = None"),),
        scene=_SECOND_DRIVER,
        breaks=("C8",),
    ),
    Mutant(
        name="next-number-without-looking",
        slip="Who finds the number taken tries the next one, without asking whether the winner decided this very job.",
        edits=(
            Edit(decision._decide, "if found.job == job.job:", "if found.token == token:"),
            Edit(decision._decide, "if decided is not None:", "if False:"),
        ),
        scene=_SECOND_DRIVER,
        breaks=("C8",),
    ),
    Mutant(
        name="overwrites-decisions",
        slip="Records are put without the condition that nobody else has created them.",
        edits=(Edit(RecordStore._put_new, "self.store.put(key, data, Create())", "self.store.put(key, data)"),),
        scene=_SECOND_DRIVER,
        breaks=("C8",),
    ),
    Mutant(
        name="any-entry-is-mine",
        slip="The entry that stands at the number after the put is taken for one's own, whosever it is.",
        edits=(Edit(decision._decide, "if found.job == job.job:", "if True:"),),
        scene=_OTHER_JOB,
        breaks=("C1",),
    ),
    Mutant(
        name="abort-without-looking",
        slip="Abort does not read the log first, and undoes a job that is committed (Iceberg 4686).",
        edits=(Edit(job.abort_job, "entry = find_decision(ctx, view, job.job, job.base_seq)", "entry = None"),),
        scene=_SECOND_DRIVER_DEAD,
        breaks=("C5",),
    ),
    Mutant(
        name="unknown-put-is-success",
        slip="A record whose put was not answered is taken as written.",
        edits=(
            Edit(
                RecordStore.create,
                "        except (OutcomeUnknownError, UnavailableError) as error:",
                "        except OutcomeUnknownError:\n            return data\n"
                "        except UnavailableError as error:",
            ),
        ),
        scene=_FAILURE,
        breaks=("log-order",),
    ),
    # --- after the decision -------------------------------------------------------------------------------------------
    Mutant(
        name="replaced-first",
        slip="What the job replaces is deleted before the job's files are published.",
        edits=(
            Edit(
                roll_forward.finish_decision,
                '            with measure.stage("job_stage_publish"):',
                '            delete_replaced(ctx, entry)\n            with measure.stage("job_stage_publish"):',
            ),
        ),
        scene=_OVERWRITE,
        breaks=("replaced-data",),
    ),
    Mutant(
        name="visible-first",
        slip="The decision is marked visible before its files are published.",
        edits=(
            Edit(
                roll_forward.finish_decision,
                '            with measure.stage("job_stage_publish"):',
                '            write_mark(ctx, entry.seq, "visible")\n'
                '            with measure.stage("job_stage_publish"):',
            ),
        ),
        scene=_READER,
        breaks=("whole-reads",),
    ),
    Mutant(
        name="trouble-is-ignored",
        slip="Trouble after the decision is swallowed: the job is committed, so it is reported as finished.",
        edits=(Edit(job._finish, "            problem, view = error, None", "            return outcome"),),
        scene=_FAILURE,
        breaks=("C1",),
    ),
    Mutant(
        name="unknown-completion-is-success",
        slip="A completion that was not answered is taken as done.",
        edits=(Edit(uploads.settle, "continue  # again", "return True  # again"),),
        scene=_FAILURE,
        breaks=("C1",),
    ),
    Mutant(
        name="not-found-is-success",
        slip="A completion that finds no upload is taken as done by somebody else, without a look at the object.",
        edits=(Edit(uploads.complete_upload, "lambda: is_published(ctx, file, written_by)", "lambda: True"),),
        scene=_EXPIRING,
        breaks=("C1",),
        change=_with_bucket_rule,
    ),
    Mutant(
        name="deletes-then-renames",
        slip="The target of a rename is deleted first, for stores that do not rename onto a file.",
        edits=(
            Edit(
                publication._rename_file,
                "    return settle(",
                "    store.delete(ctx.key(file.path))\n    return settle(",
            ),
        ),
        scene=_RENAMES_SECOND_DRIVER,
        breaks=("C6",),
    ),
    Mutant(
        name="no-helping",
        slip="A job decides without finishing earlier decisions: their drivers will.",
        edits=(Edit(helping.finish_earlier, "for seq in view.unfinished:", "for seq in ():"),),
        scene=_NEXT_OVERWRITES,
        breaks=("C9",),
        change=_other_job_later,
    ),
    # --- tasks --------------------------------------------------------------------------------------------------------
    Mutant(
        name="task-publishes",
        slip="A task completes its uploads when it commits, to spare the driver the work.",
        edits=(
            Edit(
                TwoPhaseCommitter.commit_task,
                "    owner, totals = scope.owner, totals_of(files)",
                "    owner, totals = scope.owner, totals_of(files)\n"
                "    for file in files:\n"
                "        publication_of(scope.job).publish_file(scope.ctx, file, owner.attempt)",
            ),
        ),
        scene=_SPECULATION,
        breaks=("C4",),
    ),
    Mutant(
        name="manifest-by-task",
        slip="Manifests are named by task, so the last attempt's replaces the one that counts.",
        edits=(Edit(layout.manifest, "{task:05d}-{attempt}.jsonl", "{task:05d}.jsonl"),),
        scene=_TWINS_DRIVER_DIES,
        breaks=("C9",),
    ),
    Mutant(
        name="manifests-by-listing",
        slip="The driver takes the manifests that it finds in the job's folder, not those that messages name.",
        edits=(
            Edit(
                job._decide,
                "present = check_messages(job, commits, tasks)",
                "from tests.checker.committers.mutants import listed_commits; present = listed_commits(ctx, job)",
            ),
        ),
        scene=_SPECULATION,
        breaks=("C3",),
    ),
    Mutant(
        name="task-abort-sweeps-job",
        slip="An attempt that may not commit aborts every pending upload of its job.",
        edits=(
            Edit(
                TwoPhaseCommitter.abort_task,
                '"""Do nothing',
                "from holdfast.commit.two_phase.publication import Leftovers\n"
                "    from holdfast.stores.probe import UploadListing\n"
                "    left = Leftovers(listing=UploadListing.BY_DIRECTORY)\n"
                "    publication_of(job).sweep(ctx, lambda found, key: found == job.job, left)\n"
                '    """Do nothing',
            ),
        ),
        scene=SCENES["asking"],
        breaks=("C9",),
    ),
    # --- clean-up, recovery -------------------------------------------------------------------------------------------
    Mutant(
        name="sweeps-live-jobs",
        slip="Clean-up takes every pending upload below the destination, also of jobs that have a record.",
        edits=(Edit(OverJobs.is_over, "return not any(", "return True or any("),),
        scene=_SPECULATION,
        breaks=("C7",),
    ),
    Mutant(
        name="bare-prefix",
        slip="Clean-up looks below a prefix without its slash, and for records in its own destination alone.",
        edits=(_BARE_PREFIX, Edit(OverJobs.is_over, "layout.folders(key)", "(self._ctx.prefix,)")),
        scene=_SPECULATION,
        breaks=("C7",),
    ),
    Mutant(
        name="unannounced",
        slip="A job starts without writing its record.",
        edits=(Edit(TwoPhaseCommitter.setup_job, "if record is not None:", "if False:"),),
        scene=_SPECULATION,
        breaks=("C7",),
    ),
    Mutant(
        name="recovery-keeps-uploads",
        slip="Recovery ends jobs and leaves the uploads of attempts that came later.",
        edits=(
            Edit(recovery.recover_log, "    if not dry_run:\n        everywhere", "    if False:\n        everywhere"),
        ),
        scene=_SPECULATION,
        breaks=("no-leftovers",),
    ),
    Mutant(
        name="recovery-rolls-forward",
        slip="Recovery commits a job that nobody has decided, with the manifests that are there.",
        edits=(
            Edit(
                recovery._end_open_job,
                "outcome = abort_job(Measure(ctx), record)",
                "from tests.checker.committers.mutants import listed_commits\n"
                "        from holdfast.commit.two_phase.job import commit_job\n"
                "        found = listed_commits(ctx, record)\n"
                "        outcome = commit_job(Measure(ctx), record, found, [one.task for one in found])",
            ),
        ),
        scene=_TWO_TASKS_DRIVER_DIES,
        breaks=("C9",),
    ),
    # --- readers ------------------------------------------------------------------------------------------------------
    Mutant(
        name="reader-ignores-mark",
        slip="A reader shows the files of every decision, whether it is marked visible or not.",
        edits=(Edit(snapshot._visibility, "elif entry.kind is Kind.COMMIT:", "elif False:"),),
        scene=_READER,
        breaks=("whole-reads",),
    ),
    Mutant(
        name="reader-looks-once",
        slip="A reader does not look again whether the log moved while it listed the files.",
        edits=(Edit(snapshot.read_snapshot, "if _instant(read_log(ctx)) == _instant(view):", "if True:"),),
        scene=_READER,
        breaks=("whole-reads",),
    ),
)

REDUNDANT = (
    Mutant(
        name="bare-prefix-alone",
        slip="Clean-up looks below a prefix without its slash.",
        edits=(_BARE_PREFIX,),
        scene=_SPECULATION,
        reason="a job is over only if no folder above its upload has a record of it, and the neighbour has one",
    ),
    Mutant(
        name="done-first",
        slip="A decision is marked done before its clean-up.",
        edits=(
            Edit(
                roll_forward.finish_decision,
                "    # The job is over",
                '    write_mark(ctx, entry.seq, "done")\n    # The job is over',
            ),
        ),
        scene=_DRIVER_DIES,
        reason="recovery also ends jobs that have a record, and finds the decision in the log",
    ),
    Mutant(
        name="lost-reply-is-conflict",
        slip="A record that stands there after a lost reply is taken for somebody else's.",
        edits=(
            Edit(VersionedLog.append, "if found != data:", "if True:"),
            Edit(decision._decide, "if found.job == job.job:", "if found is mine:"),
        ),
        scene=SCENES["lost-reply"],
        reason="after a conflict the log is read again before anything else, and shows the job's own decision",
    ),
    Mutant(
        name="names-without-attempt",
        slip="Names of files hold the job and the task, not the attempt, as Spark's do.",
        edits=(Edit(file_name, "-{owner.attempt}", ""),),
        scene=_SPECULATION,
        change=_remembering,
        reason="such names are allowed, too: manifests name uploads by id, and metadata say whose an object is",
    ),
)
