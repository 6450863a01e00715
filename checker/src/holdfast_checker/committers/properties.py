"""Define the properties of commit protocols that the checker verifies: invariants C1 to C10, and further ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from holdfast.commit import JobOutcome, SaveMode, layout
from holdfast.commit.records import Kind
from holdfast.errors import FencedError, HoldfastError, OutcomeUnknownError
from holdfast_checker.committers.cluster import ClusterState, JobPhase, LearnedOutcome
from holdfast_checker.committers.ledger import ledger_of_store
from holdfast_checker.committers.log_judge import (
    commit_requests_by_job,
    decision_number_in_success,
    describe_success_file_regression,
    files_after_decisions,
    judge_destination_against_log,
    judge_final_files,
    judge_outcome,
)
from holdfast_checker.committers.output import (
    DESTINATION,
    HOME,
    FileOrigin,
    choose_partition_directory,
    files_of_attempt,
    files_of_job,
    visible_files,
)
from holdfast_checker.committers.sandbox import BystanderJob, CopiedStores, StoreSandbox, cluster_state
from holdfast_checker.framework.scene_files import Judges, read_rules
from holdfast_checker.framework.subject import Rule
from holdfast_checker.kernel.world import View
from holdfast_checker.simulated.memory import StoreSnapshot


@dataclass(frozen=True, slots=True)
class VisibleAttempt:
    """The attempt whose files are regarded as the visible output of a task.

    Attributes:
        accepted: the attempt whose report the driver accepted; None if there is none.
        attempt: an attempt whose files are all visible; None if there is none.
        missing: if no attempt is completely visible, the files of the accepted attempt that are not visible.
        strange: visible files of the task that another attempt wrote, or that are damaged, duplicated, or in a wrong
            partition.
    """

    task: int
    accepted: int | None
    attempt: int | None
    missing: frozenset[FileOrigin]
    strange: frozenset[FileOrigin]


def files_of_main_job(found: Mapping[str, FileOrigin]) -> dict[str, FileOrigin]:
    """Select the files, by path, that the tested job wrote, or whose content is damaged."""
    return {path: origin for path, origin in found.items() if origin.job == "main" or origin.damaged}


def visible_attempts(cluster: ClusterState, visible: Mapping[str, FileOrigin], files: int) -> list[VisibleAttempt]:
    """Find, for each task, an attempt whose files are all visible: the one that the driver accepted if possible."""
    files_there = files_of_main_job(visible)
    there = files_there.values()
    odd = {origin for origin, times in Counter(there).items() if times > 1}
    odd |= {origin for path, origin in files_there.items() if not path.startswith(f"{_partition_of_origin(origin)}/")}
    found = []
    for task, accepted in enumerate(cluster.accepted):
        of_task = frozenset(origin for origin in there if origin.task == task)
        first = -1 if accepted is None else accepted[0]
        order = sorted(range(len(cluster.attempts[task])), key=first.__ne__)
        whole = [attempt for attempt in order if files_of_attempt("main", task, attempt, files) <= of_task]
        attempt = whole[0] if whole else None
        mine = files_of_attempt("main", task, order[0] if attempt is None else attempt, files)
        strange = (of_task - mine) | (of_task & odd)
        found.append(VisibleAttempt(task, None if accepted is None else first, attempt, mine - of_task, strange))
    return found


def _partition_of_origin(origin: FileOrigin) -> str:
    return choose_partition_directory(origin.attempt, origin.number)


def new_outcomes(before: View, after: View) -> list[LearnedOutcome]:
    """Return the job outcomes that actors learned in the step between two states of the world."""
    old, now = cluster_state(before).told, cluster_state(after).told
    return [] if old is now else list((Counter(now) - Counter(old)).elements())


def find_driver_finished_in_step(before: View, after: View) -> str:
    """Return the name of the driver that learned, in this step, that the job is committed and its clean-up finished.

    Returns:
        An empty string if no driver did."""
    told = (one for one in new_outcomes(before, after) if "driver" in one.who)
    return next((one.who for one in told if one.outcome == "committed" and one.detail), "")


def find_drivers_with_outcome(view: View, outcome: str) -> list[LearnedOutcome]:
    """Return the `LearnedOutcome` of each driver that has learned the given outcome of the tested job."""
    return [told for told in cluster_state(view).told if told.outcome == outcome and "driver" in told.who]


def format_origins(origins: Iterable[FileOrigin]) -> str:
    """Format origins of files as a comma-separated list for messages; ``nothing`` if there are none."""
    return ", ".join(map(str, sorted(origins))) or "nothing"


# --- C1 to C3 ---------------------------------------------------------------------------------------------------------
def _describe_missing_files(sandbox: StoreSandbox, view: View, found: Mapping[str, FileOrigin]) -> str:
    missing = (winner.missing for winner in visible_attempts(cluster_state(view), found, sandbox.setting.files))
    return next((format_origins(one) for one in missing if one), "")


def _judge_completeness(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge C1: for every task, all files of one attempt are visible. C3 says which attempt it must be."""
    told = find_driver_finished_in_step(before, after)
    lacks = _describe_missing_files(sandbox, after, visible_files(after)) if told else ""
    return f"{told} was told that the job is committed, and the destination lacks {lacks}" if lacks else None


def _judge_completeness_after_recovery(sandbox: StoreSandbox, view: View) -> str | None:
    """Judge C1 of a job that is committed with its clean-up pending: it must be complete after recovery."""
    told = find_drivers_with_outcome(view, "committed")
    lacks = _describe_missing_files(sandbox, view, sandbox.copy_after_recovery(view).visible_files()) if told else ""
    if not lacks:
        return None
    return f"{told[0].who} was told that the job is committed, and after recovery the destination lacks {lacks}"


def _judge_exclusiveness(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge C2: in a job reported as committed, no task has damaged files or files of two attempts."""
    told = find_driver_finished_in_step(before, after)
    if not told:
        return None
    for winner in visible_attempts(cluster_state(after), visible_files(after), sandbox.setting.files):
        if winner.strange:
            return (
                f"{told} was told that the job is committed, and beside the files of the attempt at task "
                f"{winner.task} that counts the destination holds {format_origins(winner.strange)}"
            )
    return None


def _judge_visible_attempts(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge C3: a job reported as committed shows, for each task, the files of the accepted attempt."""
    told = find_driver_finished_in_step(before, after)
    if not told:
        return None
    for winner in visible_attempts(cluster_state(after), visible_files(after), sandbox.setting.files):
        if winner.attempt not in (None, winner.accepted):
            return (
                f"{told} accepted attempt {winner.accepted} of task {winner.task}, and the destination holds the "
                f"files of attempt {winner.attempt}"
            )
    return None


# --- C4 to C7 ---------------------------------------------------------------------------------------------------------
def _judge_early_visibility(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge C4: until a driver starts to commit the job, a plain listing shows none of its files."""
    if cluster_state(after).phase is JobPhase.COMMITTING:
        return None
    there = format_origins(files_of_main_job(visible_files(after)).values())
    return f"no driver has started to commit, and the destination shows {there}" if there != "nothing" else None


def _judge_visibility_after_abort(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge C5: once a driver is told that its job is aborted, none of the job's files is visible."""
    told = find_drivers_with_outcome(after, "aborted")
    there = files_of_main_job(visible_files(after)) if told else {}
    if not there:
        return None
    return f"{told[0].who} was told that the job is aborted, and the destination shows {format_origins(there.values())}"


def _judge_changes_after_commit(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge C6: once a driver is told that the job is committed, the job's visible files do not change.

    While the job's clean-up is pending, files may still appear, but none may disappear or change.
    """
    told = find_drivers_with_outcome(before, "committed")
    if not told:
        return None
    old, new = files_of_main_job(visible_files(before)), files_of_main_job(visible_files(after))
    changed = [origin for path, origin in old.items() if new.get(path) != origin]
    if changed:
        return f"{told[0].who} was told that the job is committed, and {actor} removes {format_origins(changed)}"
    added = [origin for path, origin in new.items() if path not in old]
    if added and any(one.detail for one in told):
        return f"{told[0].who} was told that the job is committed, and {actor} adds {format_origins(added)}"
    return None


def _judge_success_of_others(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge C7: another job that runs concurrently from start to end, and meets no fault, succeeds as well."""
    for told in new_outcomes(before, after):
        mine = told.who in ("driver", "second driver", "reader") or "recovery" in told.who
        if sandbox.setting.must_all_commit and not mine and told.outcome != "committed":
            return f"another job on the destination, which met no fault, is not committed: {told.outcome}"
    return None


def _judge_untouched_bystanders(sandbox: StoreSandbox, view: View) -> str | None:
    """Judge C7: after the history, running jobs here and in a neighboring destination can still commit.

    The committed files of another job stay, unless jobs overwrite.
    """
    settled = sandbox.copy_after_recovery(view)
    kept = sandbox.setting.mode is SaveMode.APPEND and not sandbox.setting.can_other_jobs_replace_files
    if kept and not files_of_job(settled.visible_files().values(), "other"):
        for told in cluster_state(view).told:
            if told.who == "other job" and told.outcome == "committed":
                return "another job on the destination was told that it is committed, and its file is deleted"
    copy = sandbox.duplicate_copied_stores(settled)
    return next((broke for one in sandbox.bystanders if (broke := _judge_bystander(copy, sandbox, one))), None)


def _judge_bystander(copy: CopiedStores, sandbox: StoreSandbox, bystander: BystanderJob) -> str | None:
    ctx = copy.context(bystander.home)
    try:
        sandbox.setting.committer.commit_job(ctx, bystander.job, [bystander.commit], 1)
    except HoldfastError as error:
        return f"another live job, on {bystander.home}, can no longer commit: {error.message}"
    files = copy.visible_files(bystander.home).values()
    if not any(one.job == "bystander" and not one.damaged for one in files):
        return f"another live job, on {bystander.home}, has lost its file"
    return None


# --- C8 to C10 --------------------------------------------------------------------------------------------------------
def _judge_equal_outcomes(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge C8: all drivers learn the same outcome."""
    committed, aborted = find_drivers_with_outcome(after, "committed"), find_drivers_with_outcome(after, "aborted")
    if committed and aborted:
        return f"{committed[0].who} was told that the job is committed, {aborted[0].who} that it is aborted"
    return None


def _judge_outcome_after_recovery(sandbox: StoreSandbox, view: View) -> str | None:
    """Judge C8: recovery does not change the outcome, and it is that of the log if the committer keeps one."""
    found = sandbox.copy_after_recovery(view).visible_files()
    committed, aborted = find_drivers_with_outcome(view, "committed"), find_drivers_with_outcome(view, "aborted")
    if aborted and files_of_main_job(found):
        there = format_origins(files_of_main_job(found).values())
        return f"{aborted[0].who} was told that the job is aborted, and after recovery the destination shows {there}"
    attempts = visible_attempts(cluster_state(view), found, sandbox.setting.files)
    lost = [one.missing for one in attempts if one.attempt is None]
    if committed and lost:
        who, lacks = committed[0].who, format_origins(lost[0])
        return f"{who} was told that the job is committed, and after recovery the destination lacks {lacks}"
    return _log_contradiction(view, committed, aborted) if sandbox.setting.committer.keeps_log else None


def _log_contradiction(
    view: View, committed: Sequence[LearnedOutcome], aborted: Sequence[LearnedOutcome]
) -> str | None:
    """Describe how the log's decision about the job differs from what drivers learned.

    A driver may learn that the job is aborted although the log contains no decision, if no driver can commit the job
    anymore.
    """
    job = cluster_state(view).job
    if job is None:
        return None
    decisions = ledger_of_store(view, DESTINATION).decisions
    kinds = [Kind.COMMIT if one.commits else Kind.ABORT for one in decisions if one.job == job.job]
    if len(kinds) > 1:
        return f"the log decides the job more than once: {', then '.join(kind.value for kind in kinds)}"
    if committed and Kind.COMMIT not in kinds:
        return f"{committed[0].who} was told that the job is committed, and the log does not say so"
    if aborted and Kind.COMMIT in kinds:
        return f"{aborted[0].who} was told that the job is aborted, and the log says that it is committed"
    return None


def _judge_atomic_recovery(sandbox: StoreSandbox, view: View) -> str | None:
    """Judge C9: after recovery, all files of one attempt of every task are visible, or no file at all."""
    settled = sandbox.copy_after_recovery(view)
    found = files_of_main_job(settled.visible_files())
    if not found:
        return None
    for winner in visible_attempts(cluster_state(view), found, sandbox.setting.files):
        did = "; ".join(settled.recovered) or "it found nothing to do"
        if winner.attempt is None:
            return f"after recovery the job is visible without {format_origins(winner.missing)} (recovery: {did})"
        if winner.strange:
            return f"after recovery {format_origins(winner.strange)} is visible beside the job (recovery: {did})"
    return None


def _judge_repeatability(sandbox: StoreSandbox, view: View) -> str | None:
    """Judge C10: to repeat recovery, a commit or an abort changes nothing.

    If a recovery found nothing to do, the next recovery finds nothing to do either. If a later process repeats a commit
    or an abort, the outcome is the one that was reported before, and nothing visible changes. An abort of a committed
    job does not change anything visible either. If the log has trimmed the job's decision, the answer may be that the
    outcome is unknown.
    """
    if sandbox.duplicate_copied_stores(sandbox.copy_after_recovery(view)).recover():
        return "recovery, repeated after it found nothing to do, changes the store"
    cluster = cluster_state(view)
    if cluster.job is None:
        return None
    forgotten = sandbox.keeps_log and _log_has_trimmed_decisions(
        view, sandbox.copy_after_recovery(view), cluster.job.base_seq
    )
    reports = [accepted[1] for accepted in cluster.accepted if accepted is not None]
    asked = []
    if find_drivers_with_outcome(view, "committed"):
        asked = [("commit", reports, True), ("abort", None, True)]
    elif find_drivers_with_outcome(view, "aborted"):
        asked = [("abort", None, False)]
    for word, given, committed in asked:
        copy = sandbox.duplicate_copied_stores(sandbox.copy_after_recovery(view))
        before = copy.visible_files()
        outcome = copy.commit_or_abort_job(cluster.job, given)
        if forgotten and isinstance(outcome, FencedError | OutcomeUnknownError):
            continue
        if not isinstance(outcome, JobOutcome):
            return f"the job's {word}, repeated, fails: {outcome.message}"
        if outcome.committed != committed:
            return f"the job's {word}, repeated, reports that it is {'not ' if committed else ''}committed"
        if copy.visible_files() != before:
            return f"the job's {word}, repeated, changes what is visible"
    return None


def _log_has_trimmed_decisions(view: View, settled: CopiedStores, base_seq: int) -> bool:
    """Check whether the log has trimmed a decision that was made after the job started."""
    kept = settled.stores[DESTINATION].take_snapshot().objects
    keys = {HOME + layout.log_entry_path(one.seq): one for one in ledger_of_store(view, DESTINATION).decisions}
    return any(one.seq > base_seq and (key not in kept or kept[key].data != one.data) for key, one in keys.items())


def _judge_leftovers_after_recovery(sandbox: StoreSandbox, view: View) -> str | None:
    """Judge that after recovery no store contains an upload or a hidden file with the job's id."""
    job = cluster_state(view).job
    if job is None:
        return None
    settled = sandbox.copy_after_recovery(view)
    left = settled.leftover_keys(job.job)
    if not left:
        return None
    did = "; ".join(settled.recovered) or "it found nothing to do"
    return f"after recovery {left[0]} is left (recovery: {did})"


# --- readers ----------------------------------------------------------------------------------------------------------
def _judge_atomic_read(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge that the result of `read_snapshot` contains all files of the job or none."""
    whole, job = sandbox.setting.tasks * sandbox.setting.files, cluster_state(after).job
    for told in new_outcomes(before, after):
        if told.outcome == "read" and job is not None:
            seen = [path for path in cast("tuple[int, int, tuple[str, ...]]", told.detail)[2] if job.job in path]
            if len(seen) not in (0, whole):
                return f"the reader sees {len(seen)} of the job's {whole} files"
    return None


def _judge_atomic_listing(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge that in every state a plain listing shows the result of all decisions, and nothing else.

    A plain reader only lists; it knows nothing of the log. So no state may exist between a decision and its completion.
    ``_SUCCESS``, for which other tools wait, must report the newest commit. The property holds only for stores with
    transactions, so it judges no others.
    """
    transactions = sandbox.keeps_log and sandbox.setting.capabilities[DESTINATION].transactions
    if not transactions or before.states[DESTINATION] is after.states[DESTINATION]:
        return None
    ledger = ledger_of_store(after, DESTINATION)
    commits = [one for one in ledger.decisions if one.commits]
    submissions = commit_requests_by_job(sandbox, cluster_state(after), ledger)
    if any(one.job not in submissions for one in commits):
        return None  # the log's order judges such a decision
    wanted, shown = files_after_decisions(sandbox.old, commits, submissions), visible_files(after)
    made = f"after decision {commits[-1].seq}" if commits else "before any decision"
    for path in sorted(wanted.keys() | shown.keys()):
        if wanted.get(path) != shown.get(path):
            found = shown.get(path)
            return f"{made}, a plain listing " + (f"lacks {wanted[path]}" if found is None else f"shows {found}")
    reported = decision_number_in_success(cast("StoreSnapshot", after.states[DESTINATION]))
    if commits and reported != commits[-1].seq:
        return f"{made}, _SUCCESS " + ("does not exist" if reported is None else f"is that of decision {reported}")
    return None


def _judge_early_deletion(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge that in every state of an overwrite, all old files exist, or the new files of every task."""
    old, now = visible_files(before), visible_files(after)
    gone = files_of_job(old.values(), "old") - files_of_job(now.values(), "old")
    if not gone:
        return None
    if all(winner.attempt is not None for winner in visible_attempts(cluster_state(after), now, sandbox.setting.files)):
        return None
    return f"{actor} deletes data of an earlier job before its replacement is complete"


# --- the log ----------------------------------------------------------------------------------------------------------
def _judge_agreement_with_log(sandbox: StoreSandbox, before: View, after: View, actor: str) -> str | None:
    """Judge that every state of a destination with a log is one that the sequential model allows.

    This judges listings, reads, the outcomes that jobs learn, and ``_SUCCESS``, which must report the newest published
    decision and never return to an earlier one.
    """
    if not sandbox.keeps_log:
        return None
    if before.states[DESTINATION] is not after.states[DESTINATION]:
        words = judge_destination_against_log(sandbox, after) or describe_success_file_regression(before, after)
        if words:
            return words
    return next((words for told in new_outcomes(before, after) if (words := judge_outcome(sandbox, after, told))), None)


def _judge_final_agreement_with_log(sandbox: StoreSandbox, view: View) -> str | None:
    """Judge that after recovery every decision is carried out, and that another job can be committed."""
    return (judge_final_files(sandbox, view) or None) if sandbox.keeps_log else None


_JUDGES: Mapping[str, Judges] = {
    "C1": (_judge_completeness, _judge_completeness_after_recovery),
    "C2": (_judge_exclusiveness, None),
    "C3": (_judge_visible_attempts, None),
    "C6": (_judge_changes_after_commit, None),
    "replaced-data": (_judge_early_deletion, None),
    "log-order": (_judge_agreement_with_log, _judge_final_agreement_with_log),
    "C5": (_judge_visibility_after_abort, None),
    "C7": (_judge_success_of_others, _judge_untouched_bystanders),
    "C8": (_judge_equal_outcomes, _judge_outcome_after_recovery),
    "C9": (None, _judge_atomic_recovery),
    "C4": (_judge_early_visibility, None),
    "whole-reads": (_judge_atomic_read, None),
    "plain-reads": (_judge_atomic_listing, None),
    "C10": (None, _judge_repeatability),
    "no-leftovers": (None, _judge_leftovers_after_recovery),
}
"""The functions that judge a step and the end of a history, by the name of the property."""

RULES: Mapping[str, Rule] = read_rules("holdfast_checker.committers", _JUDGES)
"""The properties of commit protocols, by name, the one whose violation is the most harmful first."""

PART_OF: Mapping[str, str] = {"no-leftovers": "C9", "whole-reads": "C4", "plain-reads": "C4"}
"""For properties without a row in `holdfast.guarantees`: the name of the row that covers the property."""
