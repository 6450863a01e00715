"""Compare the visible files of a destination, and reported outcomes, with a sequential model of its decision log.

The model knows the output of jobs and the meaning of save modes, but not how the protocol works:

- An append adds the job's files. An overwrite leaves only the job's files. An overwrite of partitions leaves only the
  job's files in the directories that the job writes to, and does not change other directories. With ``fail`` or
  ``ignore``, a job is committed only if the destination is empty.
- A reader that uses Holdfast sees the result of the decisions that are marked visible, in the order of the log, and
  nothing else.
- A plain listing may show more. Before a decision is marked visible, the listing may show any of the job's files, and
  shows all files that the job replaces. Once the decision is marked visible, the listing shows all of the job's files,
  and may still show files that the job replaces. Once the decision is done, the listing shows only its result.
- Jobs may choose file names themselves. If a decision takes a name from an earlier job, no reader that uses Holdfast
  sees a file of that name until the decision is marked visible (docs/how-to/write-files.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from holdfast.commit import CommitContext, SaveMode, layout
from holdfast.commit.ids import FileOwner, file_name
from holdfast.commit.leftovers import RecoveryAction
from holdfast.commit.success_file import get_decision_number
from holdfast.commit.two_phase.snapshot import read_snapshot
from holdfast.errors import HoldfastError
from holdfast_checker.committers.cluster import ClusterState, LearnedOutcome
from holdfast_checker.committers.ledger import (
    DecisionLedger,
    LogDecision,
    PlannedCommit,
    extend_ledger,
    ledger_of_store,
)
from holdfast_checker.committers.output import (
    DESTINATION,
    HOME,
    FileOrigin,
    choose_partition_directory,
    make_chosen_file_name,
    visible_in_image,
)
from holdfast_checker.committers.sandbox import CopiedStores, StoreSandbox, cluster_state
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import StoreSnapshot

Shown = Mapping[str, FileOrigin]
"""The origins of the visible files, by path."""

_NEEDS_NOTHING = (SaveMode.FAIL, SaveMode.IGNORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """The files that a job submits for its commit, with its save mode.

    Attributes:
        who: the actor that commits the job.
        files: the origin (attempt and number) of each file, by path.
        chosen: whether the caller chose the names, which can then collide with other names.
    """

    who: str
    mode: SaveMode
    files: Shown
    chosen: bool = False

    def replaced_paths(self, before: Shown) -> frozenset[str]:
        """Return the paths of visible files that the commit of this job deletes, given the visible files before it."""
        if self.mode is SaveMode.OVERWRITE:
            return frozenset(before.keys() - self.files.keys())
        if self.mode is SaveMode.OVERWRITE_PARTITIONS:
            mine = {_directory_of_path(path) for path in self.files}
            return frozenset(path for path in before if _directory_of_path(path) in mine and path not in self.files)
        return frozenset()

    def apply_to_visible_files(self, before: Shown) -> Shown:
        """Return the visible files after the commit of this job, given the visible files before it."""
        gone = self.replaced_paths(before)
        return {**{path: origin for path, origin in before.items() if path not in gone}, **self.files}


def _directory_of_path(path: str) -> str:
    return path.rpartition("/")[0]


def files_after_decisions(old: Shown, made: Iterable[LogDecision], submissions: Mapping[str, CommitRequest]) -> Shown:
    """Apply decisions of the log one after another, and return the files that are visible afterwards.

    Args:
        old: the visible files before the first decision.
        submissions: what each job submitted, by job id.
    """
    for one in made:
        if one.commits:
            old = submissions[one.job].apply_to_visible_files(old)
    return old


def pending_chosen_paths(waiting: Iterable[LogDecision], submissions: Mapping[str, CommitRequest]) -> frozenset[str]:
    """Return the caller-chosen paths of commits that are not yet marked visible; readers see no files there."""
    jobs = [submissions[one.job] for one in waiting if one.commits]
    return frozenset(path for job in jobs if job.chosen for path in job.files)


def describe_invalid_decision(old: Shown, made: Sequence[LogDecision], submissions: Mapping[str, CommitRequest]) -> str:
    """Describe the first decision that the model forbids, given the earlier ones; empty string if all are valid."""
    batches: dict[tuple[str, int], int] = {}
    for one in made:
        if not one.commits:
            continue
        job = submissions.get(one.job)
        if job is None:
            return f"decision {one.seq} commits a job whose tasks have not all reported"
        taken = sorted(path for path in job.files if path in old)
        if old and job.mode in _NEEDS_NOTHING:
            return f"decision {one.seq} commits {job.who} with mode {job.mode.value}, and the destination holds data"
        if taken and not (job.chosen and job.mode in (SaveMode.OVERWRITE, SaveMode.OVERWRITE_PARTITIONS)):
            return f"decision {one.seq} commits {job.who}, and {taken[0]} exists already"
        if one.batch is not None and batches.setdefault(one.batch, one.seq) != one.seq:
            return f"decision {one.seq} commits a batch that decision {batches[one.batch]} committed"
        old = job.apply_to_visible_files(old)
    return ""


@dataclass(slots=True)
class AllowedFiles:
    """The set of results that the model allows for a plain listing at one moment.

    Attributes:
        allowed: for each path, the origins that its file may have, including None if the file may be missing. No other
            path may exist.
        reasons: for each path, a description of the last decision about it.
    """

    allowed: dict[str, frozenset[FileOrigin | None]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def describe_difference(self, shown: Shown) -> str:
        """Describe how listed files differ from every allowed result; return an empty string if they are allowed."""
        for path in sorted(shown.keys() | self.allowed.keys()):
            found, allowed = shown.get(path), self.allowed.get(path, frozenset({None}))
            if found in allowed:
                continue
            why = self.reasons.get(path, "no decision commits it")
            wanted = " or ".join(sorted(str(one) for one in allowed if one is not None))
            if found is None:
                return f"{wanted} is missing: {why}"
            return f"{found} is visible" + (f" in place of {wanted}" if wanted else "") + f": {why}"
        return ""


def allowed_files_after(old: Shown, ledger: DecisionLedger, submissions: Mapping[str, CommitRequest]) -> AllowedFiles:
    """Return which files a tool that only lists may see, given the decisions and how far each was carried out."""
    found = AllowedFiles({path: frozenset({origin}) for path, origin in old.items()})
    found.reasons.update(dict.fromkeys(old, "no decision replaces it"))
    for one in ledger.decisions:
        if one.commits:
            job = submissions[one.job]
            _allow_files_of_commit(
                found, one.seq, job, job.replaced_paths(old), one.seq in ledger.visible, one.seq in ledger.done
            )
            old = job.apply_to_visible_files(old)
    return found


def _allow_files_of_commit(
    found: AllowedFiles, seq: int, job: CommitRequest, gone: frozenset[str], visible: bool, done: bool
) -> None:
    there = "done" if done else "marked visible" if visible else "not marked visible"
    for path, origin in job.files.items():
        before = found.allowed.get(path, frozenset({None}))
        found.allowed[path] = frozenset({origin}) if visible or done else before | {origin}
        found.reasons[path] = f"decision {seq}, which brings it, is {there}"
    for path in gone:
        if done:
            found.allowed[path] = frozenset({None})
        elif visible:
            found.allowed[path] |= {None}
        found.reasons[path] = f"decision {seq}, which replaces it, is {there}"


_SUCCESS = HOME + layout.SUCCESS


def commit_requests_by_job(
    sandbox: StoreSandbox, cluster: ClusterState, ledger: DecisionLedger
) -> Mapping[str, CommitRequest]:
    """Return the submission (files and save mode) of each job that has been able to commit so far, by job id."""
    setting = sandbox.setting
    found: dict[str, CommitRequest] = {}
    if cluster.job is not None and None not in cluster.accepted:
        files: dict[str, FileOrigin] = {}
        for task, accepted in enumerate(cluster.accepted):
            assert accepted is not None
            attempt, report = accepted
            owner = FileOwner(report.job, task, report.attempt)
            for number in range(setting.files):
                name = make_chosen_file_name(task, number) if setting.chosen else file_name(owner, number, ".txt")
                files[f"{choose_partition_directory(attempt, number)}/{name}"] = FileOrigin(
                    "main", task, attempt, number
                )
        found[cluster.job.job] = CommitRequest(
            who="the driver", mode=cluster.job.mode, files=files, chosen=setting.chosen
        )
    jobs = {one.name: one for one in setting.others}
    times: dict[str, int] = {}
    for commit in _planned_commits_by_job(cluster, ledger):
        number = times[commit.who] = times.get(commit.who, -1) + 1
        owner = FileOwner(commit.job, 0, commit.attempt)
        files = {
            f"{folder}/{make_chosen_file_name(0, at) if setting.chosen else file_name(owner, at, '.txt')}": FileOrigin(
                commit.who.partition(" ")[0], 0, number, at
            )
            for at, folder in enumerate(jobs[commit.who].directories)
        }
        found[commit.job] = CommitRequest(who=f"the {commit.who}", mode=commit.mode, files=files, chosen=setting.chosen)
    return found


def _planned_commits_by_job(cluster: ClusterState, ledger: DecisionLedger) -> Sequence[PlannedCommit]:
    """Return the commits that jobs are about to make, of all jobs except the driver's, by job id.

    Job ids sort in the order in which an actor created them.
    """
    return sorted((*cluster.planned, *ledger.planned), key=lambda one: one.job)


def _judge_recovery_report(told: LearnedOutcome, ledger: DecisionLedger) -> str:
    """Describe how the report of recovery contradicts the decisions; empty if it does not."""
    commits = {one.job: one.commits for one in ledger.decisions}
    for job, action in cast("tuple[tuple[str, str], ...]", told.detail):
        if action == RecoveryAction.FORWARD.value and not commits.get(job):
            return f"{told.who} reports that it rolled job {job} forward, and no decision commits it"
        if action == RecoveryAction.BACK.value and commits.get(job):
            return f"{told.who} reports that it rolled job {job} back, and a decision commits it"
    return ""


# --- a state ----------------------------------------------------------------------------------------------------------
def judge_destination_against_log(sandbox: StoreSandbox, view: View) -> str:
    """Describe how the files of a destination contradict its decision log; return an empty string if they do not.

    States that look the same to the model are judged only once.
    """
    image, cluster = cast("StoreSnapshot", view.states[DESTINATION]), cluster_state(view)
    looked_at = tuple((key, one.info.etag) for key, one in image.objects.items() if _is_key_judged(key))
    reported = tuple(None if one is None else one[0] for one in cluster.accepted)
    ledger = ledger_of_store(view, DESTINATION)

    def judge_store_and_read() -> str:
        words = _judge_store_against_log(sandbox, image, ledger, commit_requests_by_job(sandbox, cluster, ledger))
        return words or _judge_read(sandbox, sandbox.copy(view).context(), ledger, cluster)

    return sandbox.get_cached_verdict((looked_at, ledger, reported, cluster.planned), judge_store_and_read) or ""


def _judge_store_against_log(
    sandbox: StoreSandbox, image: StoreSnapshot, ledger: DecisionLedger, submissions: Mapping[str, CommitRequest]
) -> str:
    if ledger.wrong:
        return ledger.wrong
    unfit = describe_invalid_decision(sandbox.old, ledger.decisions, submissions)
    if unfit:
        return unfit
    start = cast("StoreSnapshot", sandbox.initial_contents(DESTINATION))
    for key, one in start.objects.items():
        found = image.objects.get(key)
        if _is_key_of_foreign_object(key) and (found is None or found.info.etag != one.info.etag):
            return f"{key}, which belongs to no job, is {'deleted' if found is None else 'changed'}"
    unlike = allowed_files_after(sandbox.old, ledger, submissions).describe_difference(visible_in_image(image))
    return unlike or _judge_success_file(decision_number_in_success(image), ledger)


def _judge_read(sandbox: StoreSandbox, ctx: CommitContext, ledger: DecisionLedger, cluster: ClusterState) -> str:
    """Describe how a read through Holdfast contradicts the visible decisions; empty if it does not."""
    try:
        found = {file.path for file in read_snapshot(ctx).files}
    except HoldfastError as error:
        return f"a read through Holdfast fails: {error.message}"
    return _judge_read_paths(sandbox, found, ledger, cluster, len(ledger.visible))


def _judge_read_paths(
    sandbox: StoreSandbox,
    found: set[str],
    ledger: DecisionLedger,
    cluster: ClusterState,
    marks: int,
    *,
    later: bool = False,
) -> str:
    """Describe how the paths that a reader found differ from the result of the first `marks` visible decisions.

    Args:
        marks: number of decisions that count as visible, in the order of their marks.
        later: whether other decisions were made since the read.
    """
    counted = [one for one in ledger.decisions if one.seq in ledger.visible[:marks]]
    submissions = commit_requests_by_job(sandbox, cluster, ledger)
    wanted = dict(files_after_decisions(sandbox.old, counted, submissions))
    for path in pending_chosen_paths([one for one in ledger.decisions if one not in counted], submissions):
        wanted.pop(path, None)
        if later:  # the read may have ended before this decision was made
            found = found - {path}
    missing, strange = sorted(wanted.keys() - found), sorted(found - wanted.keys())
    what = f"decisions {', '.join(str(one.seq) for one in counted)} are visible" if counted else "none is visible"
    if missing:
        return f"a read through Holdfast misses {wanted[missing[0]]}, although {what}"
    return f"a read through Holdfast shows {strange[0]}, although {what}" if strange else ""


# --- a step -----------------------------------------------------------------------------------------------------------
def describe_success_file_regression(before: View, after: View) -> str:
    """Describe how a step deletes ``_SUCCESS`` or makes it report an earlier decision; empty if neither."""
    was, now = (decision_number_in_success(cast("StoreSnapshot", view.states[DESTINATION])) for view in (before, after))
    if was is None or (now is not None and now >= was):
        return ""
    return f"_SUCCESS was that of decision {was}, and is " + ("deleted" if now is None else f"that of decision {now}")


def judge_outcome(sandbox: StoreSandbox, view: View, told: LearnedOutcome) -> str:
    """Describe how an outcome or a read that an actor reported contradicts the decision log; empty if it does not."""
    ledger, cluster = ledger_of_store(view, DESTINATION), cluster_state(view)
    if told.outcome == "read":
        since, until, paths = cast("tuple[int, int, tuple[str, ...]]", told.detail)
        marks = range(since, until + 1)
        words = [_judge_read_paths(sandbox, set(paths), ledger, cluster, one, later=True) for one in marks]
        return f"{told.who}: {words[-1]}" if all(words) else ""
    if told.outcome == "recovered":
        return _judge_recovery_report(told, ledger)
    jobs: set[str] = {one.job for one in _planned_commits_by_job(cluster, ledger) if one.who == told.who}
    if "driver" in told.who and cluster.job is not None:
        jobs = {cluster.job.job}
    decided = [one for one in ledger.decisions if one.job in jobs]
    newest = max(decided, key=lambda one: one.seq, default=None)
    if told.outcome == "committed":
        if newest is None or not newest.commits:
            return f"{told.who} was told that its job is committed, and no decision commits it"
        if told.detail and newest.seq not in ledger.done:
            return f"{told.who} was told that nothing is left to do, and decision {newest.seq} is not done"
    # An actor that runs several jobs may have been told of this commit before; then it is another job that ended.
    was_told = any(one.who == told.who and one.outcome == "committed" for one in cluster.told)
    if told.outcome == "aborted" and len(jobs) == 1 and newest is not None and newest.commits and not was_told:
        return f"{told.who} was told that its job is aborted, and decision {newest.seq} commits it"
    return ""


# --- the end ----------------------------------------------------------------------------------------------------------
def judge_final_files(sandbox: StoreSandbox, view: View) -> str:
    """Run recovery at the end of an execution, and describe how the result contradicts the model; empty if not."""
    settled, cluster = sandbox.copy_after_recovery(view), cluster_state(view)
    told = next((one for one in cluster.told if one.who == "driver"), None)
    if sandbox.setting.must_all_commit and (told is None or told.outcome != "committed" or not told.detail):
        outcome = "nothing" if told is None else told.outcome
        return f"without faults and interference, the driver was told: {outcome}"
    if settled.troubles:
        return f"recovery does not finish: {settled.troubles[-1]}"
    image = settled.stores[DESTINATION].take_snapshot()
    ledger = extend_ledger(ledger_of_store(view, DESTINATION), image)
    waiting = [one.seq for one in ledger.decisions if one.seq not in ledger.done]
    if waiting:
        return f"after recovery decision {waiting[0]} is not done"
    submissions = commit_requests_by_job(sandbox, cluster, ledger)
    words = _judge_store_against_log(sandbox, image, ledger, submissions) or _judge_read(
        sandbox, settled.context(), ledger, cluster
    )
    if words:
        return f"after recovery, {words}"
    left = [one for commit in _planned_commits_by_job(cluster, ledger) for one in settled.leftover_keys(commit.job)]
    if left:
        return f"after recovery {left[0]} is left"
    return _judge_commit_after_recovery(
        sandbox.duplicate_copied_stores(settled), files_after_decisions(sandbox.old, ledger.decisions, submissions)
    )


def _judge_commit_after_recovery(copy: CopiedStores, before: Shown) -> str:
    """Commit another job, and describe what goes wrong; empty if nothing does."""
    try:
        path = copy.append_file()
    except HoldfastError as error:
        return f"after recovery no job can be committed: {error.message}"
    is_added = copy.visible_files().keys() == before.keys() | {path}
    return "" if is_added else "after recovery the next job does not add to the visible files"


def _is_key_of_foreign_object(key: str) -> bool:
    if key.startswith(HOME):
        path = key[len(HOME) :]
        return layout.is_hidden(path) and not path.startswith((layout.HOME, layout.SUCCESS))
    return layout.HOME not in key


def _is_key_judged(key: str) -> bool:
    return not key.startswith(HOME + layout.JOBS)


def decision_number_in_success(image: StoreSnapshot) -> int | None:
    """Return the number of the log decision that the file ``_SUCCESS`` reports; None if there is no such file."""
    found = image.objects.get(_SUCCESS)
    return None if found is None else get_decision_number(json.loads(found.data))


def _judge_success_file(seq: int | None, ledger: DecisionLedger) -> str:
    """Describe why the decision that _SUCCESS reports is wrong; empty if it is right.

    It must be a commit that is marked visible, and not older than the newest commit that is done.
    """
    committed = [one.seq for one in ledger.decisions if one.commits]
    done = max((one for one in committed if one in ledger.done), default=0)
    if seq is None:
        return f"decision {done} is done, and _SUCCESS does not exist" if done else ""
    if seq > ledger.base and seq not in ledger.visible and seq not in ledger.done:
        return f"_SUCCESS reports decision {seq}, which is not marked visible"
    if seq > ledger.base and seq not in committed:
        return f"_SUCCESS reports decision {seq}, which commits nothing"
    return f"decision {done} is done, and _SUCCESS reports decision {seq}" if seq < done else ""
