"""Describe the calls and the state of a simulated job in words, for counterexamples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from holdfast.commit import JobRecord, layout
from holdfast.commit.two_phase.records import decode_entry
from holdfast.errors import CorruptDataError, HoldfastError
from holdfast.stores.base import Change, Complete, Delete, ObjectInfo, Put, Require, RequireEmpty
from holdfast.wording import format_count
from holdfast_checker.committers.cluster import CLUSTER, ClusterState
from holdfast_checker.committers.output import (
    DESTINATION,
    HOME,
    FileOrigin,
    parse_origin,
    visible_files,
    visible_in_image,
)
from holdfast_checker.kernel.calls import Fault
from holdfast_checker.kernel.world import View, World
from holdfast_checker.narrative.sentences import CallEvent, CallImportance, CallPhrase, Narrator
from holdfast_checker.simulated.memory import StoreSnapshot

_JOB = r"\d{17}-[0-9a-f]{12}"
_TOKEN = r"(?P<attempt>[0-9a-f]{12})"
_ATTEMPT = rf"attempt_{_JOB}_m_\d+_{_TOKEN}"
_TASK = rf"task_{_JOB}_m_(?P<task>\d+)"
_OURS = rf"_holdfast/jobs/{_JOB}/"

# Patterns of paths, each with the noun for it; the first match wins. The name of a group says who owns the file: an
# attempt, a task or a job.
_PLACES = tuple(
    (re.compile(pattern), noun)
    for pattern, noun in (
        (r"", "the destination"),
        (r"_SUCCESS", "_SUCCESS"),
        (r"_holdfast/log/", "the decision log"),
        (r"_holdfast/jobs/", "the jobs folder"),
        (r".*/_SUCCESS\.tmp", "a draft of _SUCCESS"),
        (rf"{layout.LOG}0*(?P<seq>\d+)\.json", "decision {seq}"),
        (rf"{layout.LOG}0*(?P<seq>\d+)\.(?P<mark>visible|done)", "the {mark} mark of decision {seq}"),
        (rf"{_OURS}attempts/\d+-{_TOKEN}\.jsonl", "manifest"),
        (rf"{_OURS}attempts/\d+-{_TOKEN}\.intents-\d+\.jsonl", "list of intents"),
        (rf"{_OURS}attempts/\d+-{_TOKEN}/.*", "hidden file"),
        (rf"{_OURS}committed-.*", "the list of committed manifests"),
        (rf"{_OURS}replaced-.*", "the list of replaced files"),
        (rf".*/{_ATTEMPT}/?", "attempt directory"),
        (rf".*/{_TASK}/?", "committed directory"),
        (rf".*/{_ATTEMPT}/.*\.pending", "pending record"),
        (rf"__magic_.*/{_ATTEMPT}/.*", "marker"),
        (rf".*/{_ATTEMPT}/uploads\.pendingset", "pending set"),
        (rf".*/{_TASK}(/uploads)?\.pendingset", "pending set"),
        (rf".*/{_ATTEMPT}-manifest\.json\.tmp", "draft of a manifest"),
        (rf".*/{_TASK}-manifest\.json", "manifest"),
        (rf".*/(?P<record>job(_{_JOB}\..*)?)\.json", "record"),
        (rf".*/{_ATTEMPT}/.*", "hidden file"),
        (rf".*/{_TASK}/.*", "committed file"),
    )
)
_IDS = re.compile(rf"(?:{_JOB}|\b[0-9a-f]{{12}}\b)")

_BOOKKEEPING = ("its draft", "a draft", "the record", "the visible mark", "the done mark", "the list", "a start marker")
"""How the names of records that decide nothing begin."""


def shorten_ids(text: str) -> str:
    """Shorten each id in a text to the number of its creator and its own number: ``part-00000-…1.1-c000.txt``."""
    return _IDS.sub(lambda found: f"…{int(found[0][-12:-8], 16):x}.{int(found[0][-8:], 16):x}", text)


def relative_path(key: str) -> str:
    """Return the path of an object relative to the destination; empty for the destination itself."""
    return "" if f"{key}/" == HOME else key.removeprefix(HOME)


def is_bookkeeping_record(name: str) -> bool:
    """Check whether a description names an object that commits or aborts no job, such as a draft or a done mark."""
    return name.startswith(_BOOKKEEPING) or name.endswith(("record", "marker"))


# --- calls on the cluster ---------------------------------------------------------------------------------------------
def _describe_task_report(event: CallEvent) -> str:
    task, attempt = cast("tuple[int, int]", event.call.args[:2])
    if event.alternative is None:
        return "reports"
    before, after = (_get_cluster_state(view).accepted[task] for view in (event.before, event.after))
    is_accepted = before is None and after is not None and after[0] == attempt
    return f"reports, which the driver {'accepts' if is_accepted else 'drops'}"


def _describe_learned_outcome(event: CallEvent) -> str:
    outcome, detail = event.call.args
    if outcome == "read":
        return f"has read {format_count(len(cast('tuple[int, int, tuple[str, ...]]', detail)[2]), 'file')}"
    if outcome == "recovered":
        jobs = [f"{action} job {shorten_ids(job)}" for job, action in cast("tuple[tuple[str, str], ...]", detail)]
        return f"is done: {' and '.join(jobs) or 'nothing to recover'}"
    if outcome in ("committed", "aborted"):
        return f"reports that the job is {outcome}{', with clean-up pending' if detail is False else ''}"
    return f"ends without success ({outcome}: {detail})"


def _describe_wait_for_tasks(event: CallEvent) -> str:
    failed = event.alternative is not None and event.reply is None
    return "sees that the job cannot succeed" if failed else "receives its tasks' reports"


_CLUSTER_CALLS: Mapping[str, str | Callable[[CallEvent], str]] = {
    "post_job": lambda event: f"starts job {shorten_ids(cast('JobRecord', event.call.args[0]).job)}",
    "await_tasks": _describe_wait_for_tasks,
    "begin": "starts",
    "may_commit": lambda event: f"{'is denied' if event.reply is False else 'gets'} permission to commit",
    "report": _describe_task_report,
    "fail": "fails",
    "lose": lambda event: f"{event.label} from the driver",
    "cancel": "cancels the job",
    "take_over": lambda event: f"takes over the job {event.label} it",
    "restart": "continues the job as its next attempt",
    "take_for_dead": "presumes the driver dead",
    "await_end": "starts once the driver is gone",
    "plan_commit": "is ready to commit",
    "tell": _describe_learned_outcome,
}
"""For each operation of the cluster, what the caller does."""

_STORE_CALLS: Mapping[str, tuple[str, str, str]] = {
    "put": ("writes", "records", ""),
    "finish_write": ("writes", "files", ""),
    "delete": ("deletes", "files", ""),
    "delete_many": ("deletes", "files", ""),
    "rename": ("renames", "files", " into place"),
    "rename_dir": ("renames", "files", " into place"),
    "copy": ("copies a file to", "places", ""),
    "apply": ("changes in one step", "places", ""),
    "create_upload": ("starts", "uploads", ""),
    "upload_part": ("uploads", "hidden files", ""),
    "complete_upload": ("completes", "uploads", ""),
    "abort_upload": ("aborts", "uploads", ""),
}
"""For each operation that changes a store: verb, plural of its objects, and the end of the sentence."""

_SMALL = frozenset({"begin", "plan_commit", "create_upload"})
"""Bookkeeping."""


def name_decision(key: str, seq: int, data: bytes) -> str:
    """Describe a log entry by its decision and its job: ``commit of job …1.1``."""
    try:
        entry = decode_entry(key, seq, data)
    except CorruptDataError:
        return "unreadable"
    return f"{entry.kind.value} of job {shorten_ids(entry.record.job)}"


# --- the narrator -----------------------------------------------------------------------------------------------------
def job_narrator(world: World) -> Narrator:
    """Return the functions that describe the calls and states of a committer's world in words."""
    words = _CallDescriber(tuple(actor.name for actor in world.actors))
    return Narrator(act=words.act, fault=words.fault, holds=words.holds)


@dataclass(frozen=True, slots=True)
class _CallDescriber:
    """Describes the calls of a committer's world in words.

    Attributes:
        actors: names of the world's actors, in order.
    """

    actors: tuple[str, ...]

    def creator_of(self, token: str) -> str:
        """Return the name of the actor that created a token, an id that starts with the actor's number."""
        number = int(token[:4], 16) - 1
        return self.actors[number] if 0 <= number < len(self.actors) else "another live job"

    def name(self, event: CallEvent, key: str) -> str:
        """Describe what is stored at a key and to whom it belongs; for a visible file, return its shortened path."""
        path = relative_path(key)
        found = ((match, noun) for place, noun in _PLACES if (match := place.fullmatch(path)))
        match, noun = next(found, (None, ""))
        if match is None:
            return shorten_ids(path)
        groups = match.groupdict()
        if "attempt" in groups:
            return self._with_owner(noun, self.creator_of(groups["attempt"]), event)
        if "task" in groups:
            return self._with_owner(noun, f"task {int(groups['task'])}", event)
        if "record" in groups:
            job = re.search(_JOB, path)
            owner = self.creator_of(job[0][-12:]) if job else "driver"
            return "the job's record" if owner == "driver" else f"the record of {owner}"
        return noun.format(**groups)

    def _with_owner(self, noun: str, owner: str, event: CallEvent) -> str:
        return f"its {noun}" if event.actor == owner else f"the {noun} of {owner}"

    # --- calls --------------------------------------------------------------------------------------------------------
    def act(self, event: CallEvent) -> CallPhrase:
        """Describe a call in a history by a phrase without the actor, such as ``reads a``."""
        if event.call.resource == CLUSTER:
            words = _CLUSTER_CALLS[event.call.operation]
            return CallPhrase(verb=words if isinstance(words, str) else words(event), weight=_weight_of_call(event))
        act = self._describe_decision(event) or self._store_act(event)
        if isinstance(event.reply, HoldfastError) and event.fault is None and act.weight >= CallImportance.WORK:
            why = event.reply.message.partition(":")[0]
            return replace(act, plural="", tail=f"{act.tail}, which fails: {why}", weight=CallImportance.WORK)
        return replace(act, weight=self._weight_of(event, act.weight))

    def _store_act(self, event: CallEvent) -> CallPhrase:
        operation, args = event.call.operation, event.call.args
        if operation == "run_atomically":
            return CallPhrase(verb="runs a whole job")
        verb, plural, tail = _STORE_CALLS.get(operation, ("reads", "places", ""))
        weight = _weight_of_call(event) if operation in _STORE_CALLS else CallImportance.READ
        things = tuple(self.name(event, key) for key in _keys_named_by_call(operation, args))
        if operation in ("rename", "rename_dir"):
            source, target = things
            if layout.is_hidden(str(args[1])) and target != "_SUCCESS":
                tail, things = f" to {target}", (source,)
            else:
                things = (target,)
        elif operation == "put" and is_bookkeeping_record(things[0]):
            weight = CallImportance.SMALL
        elif operation in ("create_upload", "upload_part"):
            things = ("an upload" if operation == "create_upload" else "a hidden file",)
        elif operation == "finish_write" and (layout.is_hidden(str(args[0])) or event.call.resource != DESTINATION):
            plural, things = "hidden files", ("a hidden file",)
        elif operation == "abort_upload":
            owner = self.creator_of(str(args[1]))
            things = (f"{'its upload' if owner == event.actor else f'the upload of {owner}'} to {things[0]}",)
        return CallPhrase(verb=verb, things=things, plural=plural, tail=tail, weight=weight)

    def _describe_decision(self, event: CallEvent) -> CallPhrase | None:
        """Describe a put or a transaction that makes a decision, with the number of files; None for another call."""
        changes: Sequence[Change] = ()
        if event.call.operation == "apply":
            changes = cast("tuple[Change, ...]", event.call.args[0])
            puts = [(change.key, change.data) for change in changes if isinstance(change, Put)]
        elif event.call.operation == "put":
            puts = [cast("tuple[str, bytes]", event.call.args[:2])]
        else:
            return None
        decisions = [
            f"{name_decision(key, int(found[1]), data)} ({self.name(event, key)})"
            for key, data in puts
            if (found := re.fullmatch(rf"{layout.LOG}(\d+)\.json", relative_path(key)))
        ]
        if not decisions:
            return None
        completed = sum(isinstance(change, Complete) for change in changes)
        deleted = sum(isinstance(one, Delete) and not layout.is_hidden(relative_path(one.key)) for one in changes)
        done = ", ".join([f"{completed} completed"] * (completed > 0) + [f"{deleted} deleted"] * (deleted > 0))
        return CallPhrase(verb="decides:", things=tuple(decisions), tail=f", files: {done}" * bool(done))

    def _weight_of(self, event: CallEvent, weight: CallImportance) -> CallImportance:
        if event.alternative is None or weight is CallImportance.READ:
            return weight
        before, after = (
            _get_store_snapshot(event.before, event.call.resource),
            _get_store_snapshot(event.after, event.call.resource),
        )
        if before.key == after.key:
            return CallImportance.READ
        if event.call.resource == DESTINATION and visible_in_image(before, "") != visible_in_image(after, ""):
            return CallImportance.WORK
        return weight

    def fault(self, event: CallEvent) -> str:
        """Describe the fault of a call, as the end of a sentence that begins with the call."""
        if event.fault is Fault.LOST_REPLY:
            return ", but the reply is lost"
        if event.fault is Fault.FAILURE:
            lost = event.label == "request lost"
            return ", but the request is lost" if lost else ", but the call fails and has no effect"
        if event.fault is Fault.STALE_LISTING:
            unseen = event.label.removeprefix("does not show ").partition(", upload ")[0]
            return f", and the listing does not show {self.name(event, unseen)}"
        if event.fault is Fault.CONTENTION:
            return ", but the store answers that another write is in progress"
        if event.fault is Fault.CLOCK:
            return ", although it is alive"
        if event.call.operation == "lose":
            return "; the driver presumes it dead, but it keeps running"
        return ", although the first driver is alive: it is partitioned and keeps running"

    # --- state --------------------------------------------------------------------------------------------------------
    def holds(self, view: View) -> Mapping[str, str]:
        """Describe stores and cluster in a state: visible and hidden files, uploads, decisions, reported outcomes."""
        image, cluster = _get_store_snapshot(view, DESTINATION), _get_cluster_state(view)
        shown = _describe_origins(visible_files(view).values())
        hidden = (
            parse_origin(found.data)
            for name in view.states
            if name != CLUSTER
            for key, found in _get_store_snapshot(view, name).objects.items()
            if name != DESTINATION or (key.startswith(HOME) and layout.is_hidden(key[len(HOME) :]))
        )
        uploads = Counter(self.creator_of(name) for name, one in image.uploads.items() if one.info.key.startswith(HOME))
        return {
            "the destination shows": shown + (" (and _SUCCESS)" if HOME + layout.SUCCESS in image.objects else ""),
            "hidden": _describe_origins(origin for origin in hidden if not origin.damaged),
            "pending uploads": ", ".join(f"{count} of {who}" for who, count in sorted(uploads.items())) or "none",
            "decided": ", ".join(_describe_decisions_in_log(image)) or "nothing",
            "outcomes": ", ".join(f"{told.who}: {told.outcome}" for told in cluster.told) or "none",
        }


def _weight_of_call(event: CallEvent) -> CallImportance:
    return CallImportance.SMALL if event.call.operation in _SMALL else CallImportance.WORK


def _get_store_snapshot(view: View, name: str) -> StoreSnapshot:
    return cast("StoreSnapshot", view.states[name])


def _get_cluster_state(view: View) -> ClusterState:
    return cast("ClusterState", view.states[CLUSTER])


def _describe_origins(origins: Iterable[FileOrigin]) -> str:
    """Describe files, grouped by attempt: ``files 0 and 1 of task 0 attempt 1, file 0 of task 1 attempt 0``."""
    numbers: dict[str, list[int]] = {}
    for origin in sorted(origins):
        if origin.damaged:
            whose = f"damaged data ({origin.job[:20]!r})"
        else:
            whose = f"task {origin.task} attempt {origin.attempt}" + _describe_job(origin.job)
        numbers.setdefault(whose, []).append(origin.number)
    files = {whose: f"file{'s' if len(of) > 1 else ''} {' and '.join(map(str, of))}" for whose, of in numbers.items()}
    return ", ".join(f"{words} of {whose}" for whose, words in files.items()) or "nothing"


def _describe_job(job: str) -> str:
    return "" if job == "main" else f" of the {job} job"


def _describe_decisions_in_log(image: StoreSnapshot) -> Iterable[str]:
    for key, found in sorted(image.objects.items()):
        match = re.fullmatch(rf"{layout.LOG}(\d+)\.json", relative_path(key))
        if match is not None:
            yield f"{int(match[1])} {name_decision(key, int(match[1]), found.data)}"


def _keys_named_by_call(operation: str, args: Sequence[object]) -> list[str]:
    """Return the keys of objects that the arguments of a call on a store contain."""
    if operation == "apply":
        changes = cast("tuple[Change, ...]", args[0])
        return [change.key for change in changes if not isinstance(change, Require | RequireEmpty)]
    if operation in ("rename", "rename_dir", "copy"):
        return [str(one) for one in args[operation == "copy" : 2]]
    first = args[0]
    if isinstance(first, tuple):
        return [str(key) for key in first]
    return [first.key if isinstance(first, ObjectInfo) else str(first)]
