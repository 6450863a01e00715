"""The words of jobs: calls of stores and of the cluster, places of the committers, and what a destination shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from holdfast.checker.committers.cluster import CLUSTER, ClusterState
from holdfast.checker.committers.output import DESTINATION, HOME, Origin, origin_of, visible, visible_in
from holdfast.checker.kernel.calls import Fault
from holdfast.checker.kernel.world import View, World
from holdfast.checker.narrative.teller import Act, Event, Teller, Thing, Weight
from holdfast.commit import JobRecord, layout
from holdfast.commit.two_phase.codec import decode_entry
from holdfast.errors import CorruptDataError, HoldfastError
from holdfast.stores.base import ObjectInfo
from holdfast.stores.memory.store import MemoryImage

__all__ = ["job_teller", "short"]

_JOB = r"\d{17}-[0-9a-f]{12}"
_TOKEN = r"(?P<attempt>[0-9a-f]{12})"
_ATTEMPT = rf"attempt_{_JOB}_m_\d+_{_TOKEN}"
_TASK = rf"task_{_JOB}_m_(?P<task>\d+)"
_OURS = rf"_holdfast/jobs/{_JOB}/"

# What lies where; the first that fits. Whose it is: an attempt's, a task's, a job's, or nobody's.
_PLACES = tuple(
    (re.compile(pattern), noun)
    for pattern, noun in (
        (r"", "the destination"),
        (r"_SUCCESS", "_SUCCESS"),
        (r"_holdfast/log/", "the decision log"),
        (r"_holdfast/jobs/", "the folder of jobs"),
        (r".*/_SUCCESS\.tmp", "a draft of _SUCCESS"),
        (rf"{layout.LOG}0*(?P<seq>\d+)\.json", "decision {seq}"),
        (rf"{layout.LOG}0*(?P<seq>\d+)\.(?P<mark>visible|done)", "the note that decision {seq} is {mark}"),
        (rf"{_OURS}attempts/\d+-{_TOKEN}\.jsonl", "manifest"),
        (rf"{_OURS}attempts/\d+-{_TOKEN}\.intents-\d+\.jsonl", "list of intents"),
        (rf"{_OURS}attempts/\d+-{_TOKEN}/.*", "hidden file"),
        (rf"{_OURS}committed-.*", "the list of what is committed"),
        (rf"{_OURS}replaced-.*", "the list of what is replaced"),
        (rf"{_OURS}started/.*", "a mark of a start"),
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


_BOOKKEEPING = ("its draft", "a draft", "the record", "the note", "the list", "a mark")
"""What the names of records start with that decide nothing."""


def short(text: str) -> str:
    """Keys with their ids cut down to whose they are and which: ``part-00000-…1.1-c000.txt``."""
    return _IDS.sub(lambda found: f"…{int(found[0][-12:-8], 16):x}.{int(found[0][-8:], 16):x}", text)


def job_teller(world: World) -> Teller:
    """The teller for a world of `worlds`: names attempts by the actors that run them."""
    words = _Words(tuple(actor.name for actor in world.actors))
    return Teller(act=words.act, fault=words.fault, holds=words.holds, things=words.things)


# --- names ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class _Words:
    actors: tuple[str, ...]

    def owner(self, token: str) -> str:
        """The actor that made a token: a port's tokens start with its number."""
        number = int(token[:4], 16) - 1
        return self.actors[number] if 0 <= number < len(self.actors) else "another live job"

    def name(self, event: Event, key: str) -> str:
        """A key in words: what it is and whose, or the file that everybody sees there."""
        path = _path(key)
        match, noun = next(
            ((match, noun) for pattern, noun in _PLACES if (match := pattern.fullmatch(path))), (None, "")
        )
        if match is None:
            return short(path)
        found = match.groupdict()
        if "attempt" in found:
            return self._of(noun, self.owner(found["attempt"]), event)
        if "task" in found:
            return self._of(noun, f"task {int(found['task'])}", event)
        if "record" in found:
            job = re.search(_JOB, path)
            owner = self.owner(job[0][-12:]) if job else "driver"
            return "the job's record" if owner == "driver" else f"the record of {owner}"
        return noun.format(**found)

    def _of(self, noun: str, owner: str, event: Event) -> str:
        return f"its {noun}" if event.actor == owner else f"the {noun} of {owner}"

    # --- calls --------------------------------------------------------------------------------------------------------
    def act(self, event: Event) -> Act:
        """A call in words."""
        if event.call.resource == CLUSTER:
            return _CLUSTER_ACTS[event.call.operation](self, event)
        act = _STORE_ACTS[event.call.operation](self, event)
        if isinstance(event.reply, HoldfastError) and event.fault is None and act.weight >= Weight.WORK:
            why = event.reply.message.partition(":")[0]
            return Act(verb=act.verb, things=act.things, tail=f"{act.tail}, in vain: {why}")
        return Act(
            verb=act.verb, things=act.things, plural=act.plural, tail=act.tail, weight=self._weight(event, act.weight)
        )

    def _weight(self, event: Event, weight: Weight) -> Weight:
        if event.alternative is None or weight is Weight.READ:
            return weight
        before, after = _image(event.before, event.call.resource), _image(event.after, event.call.resource)
        if before.key == after.key:
            return Weight.READ
        if event.call.resource == DESTINATION and visible_in(before, "") != visible_in(after, ""):
            return Weight.TURN
        return weight

    def fault(self, event: Event) -> str:
        """What went wrong with a call, behind its words."""
        if event.fault is Fault.LOST_REPLY:
            return ", but the reply is lost"
        if event.fault is Fault.FAILURE:
            lost = event.label == "request lost"
            return ", but the request is lost" if lost else ", but the call fails and does nothing"
        if event.fault is Fault.STALE_LISTING:
            unseen = event.label.removeprefix("does not show ").partition(", upload ")[0]
            return f", and the listing does not show {self.name(event, unseen)}"
        if event.fault is Fault.CONTENTION:
            return ", but is told that another write is under way"
        if event.fault is Fault.CLOCK:
            return ", although it lives"
        if event.call.operation == "lose":
            return "; the driver takes it for dead, but it goes on"
        return ", although the first driver lives: it is cut off, and goes on"

    # --- what there is ------------------------------------------------------------------------------------------------
    def holds(self, view: View) -> Mapping[str, str]:
        """What everybody sees, what is pending, what is decided and told."""
        image, cluster = _image(view, DESTINATION), _cluster(view)
        shown = _in_words(visible(view).values())
        hidden = (
            origin_of(found.data)
            for name in view.states
            if name != CLUSTER
            for key, found in _image(view, name).objects.items()
            if name != DESTINATION or (key.startswith(HOME) and layout.is_hidden(key[len(HOME) :]))
        )
        uploads = Counter(self.owner(name) for name, one in image.uploads.items() if one.info.key.startswith(HOME))
        return {
            "the destination shows": shown + (" (and _SUCCESS)" if HOME + layout.SUCCESS in image.objects else ""),
            "hidden": _in_words(origin for origin in hidden if not origin.damaged),
            "pending uploads": ", ".join(f"{count} of {who}" for who, count in sorted(uploads.items())) or "none",
            "decided": ", ".join(_decisions(image)) or "nothing",
            "outcomes": ", ".join(f"{told.who}: {told.outcome}" for told in cluster.told) or "none",
        }

    def things(self, view: View) -> Sequence[Thing]:
        """Every object, upload, attempt and outcome."""
        found: list[Thing] = []
        for name, state in view.states.items():
            if name != CLUSTER:
                found += self._stored(name, cast("MemoryImage", state))
        cluster = _cluster(view)
        found.append(Thing("driver and tasks", "driver", f"{cluster.driver}, {cluster.phase.value}"))
        for task, attempts in enumerate(cluster.attempts):
            accepted = cluster.accepted[task]
            for number, attempt in enumerate(attempts):
                counts = "; its report counts" if accepted is not None and accepted[0] == number else ""
                found.append(Thing("driver and tasks", f"task {task} attempt {number}", f"{attempt.value}{counts}"))
        found += [Thing("outcomes", told.who, told.outcome) for told in cluster.told]
        return found

    def _stored(self, name: str, image: MemoryImage) -> Iterable[Thing]:
        for key, found in sorted(image.objects.items()):
            origin = origin_of(found.data)
            text = f"{len(found.data)} bytes" if origin.damaged else str(origin)
            plain = name == DESTINATION and not layout.is_hidden(key)
            yield Thing("visible files" if plain else f"hidden in the {name}", key, text)
        for upload_id, upload in sorted(image.uploads.items()):
            parts = len(upload.parts)
            text = f"upload {short(upload_id)} of {self.owner(upload_id)}, {parts} part{'' if parts == 1 else 's'}"
            yield Thing("pending uploads", f"{upload.info.key} {upload_id}", text)


def _path(key: str) -> str:
    return "" if f"{key}/" == HOME else key.removeprefix(HOME)


def _image(view: View, name: str) -> MemoryImage:
    return cast("MemoryImage", view.states[name])


def _cluster(view: View) -> ClusterState:
    return cast("ClusterState", view.states[CLUSTER])


def _in_words(origins: Iterable[Origin]) -> str:
    """``files 0 and 1 of task 0 attempt 1, file 0 of task 1 attempt 0``."""
    numbers: dict[str, list[int]] = {}
    for origin in sorted(origins):
        if origin.damaged:
            whose = f"damaged data ({origin.job[:20]!r})"
        else:
            whose = f"task {origin.task} attempt {origin.attempt}" + _job_words(origin.job)
        numbers.setdefault(whose, []).append(origin.number)
    return (
        ", ".join(
            f"file{'s' if len(found) > 1 else ''} {' and '.join(map(str, found))} of {whose}"
            for whose, found in numbers.items()
        )
        or "nothing"
    )


def _job_words(job: str) -> str:
    return "" if job == "main" else f" of the {job} job"


def _decisions(image: MemoryImage) -> Iterable[str]:
    for key, found in sorted(image.objects.items()):
        match = re.fullmatch(rf"{layout.LOG}(\d+)\.json", _path(key))
        if match is not None:
            yield f"{int(match[1])} {_kind(key, int(match[1]), found.data)}"


def _kind(key: str, seq: int, data: bytes) -> str:
    try:
        entry = decode_entry(key, seq, data)
    except CorruptDataError:
        return "unreadable"
    return f"{entry.kind.value} of job {short(entry.record.job)}"


# --- calls of a store -------------------------------------------------------------------------------------------------
_ActOf = Callable[[_Words, Event], Act]


def _look(verb: str, words: _Words, event: Event) -> Act:
    first = event.call.args[0]
    key = first.key if isinstance(first, ObjectInfo) else str(first)
    return Act(verb=verb, things=(words.name(event, key),), plural="places", weight=Weight.READ)


def _check(words: _Words, event: Event) -> Act:
    keys = cast("tuple[str, ...]", event.call.args[0])
    things = tuple(words.name(event, key) for key in keys)
    return Act(verb="checks that it may rename to", things=things, plural="places", weight=Weight.READ)


def _put(words: _Words, event: Event) -> Act:
    key = str(event.call.args[0])
    name = words.name(event, key)
    if re.fullmatch(rf"{layout.LOG}\d+\.json", _path(key)):
        seq = int(_path(key)[len(layout.LOG) : -len(".json")])
        kind = _kind(key, seq, cast("bytes", event.call.args[1]))
        return Act(verb="decides:", things=(f"{kind} ({name})",), weight=Weight.TURN)
    small = name.startswith(_BOOKKEEPING) or name.endswith(("record", "marker"))
    return Act(verb="saves", things=(name,), plural="records", weight=Weight.SMALL if small else Weight.WORK)


def _write(words: _Words, event: Event) -> Act:
    if layout.is_hidden(str(event.call.args[0])) or event.call.resource != DESTINATION:
        return Act(verb="writes", things=("a hidden file",), plural="hidden files")
    return Act(verb="writes", things=(words.name(event, str(event.call.args[0])),), plural="files")


def _delete(words: _Words, event: Event) -> Act:
    keys = event.call.args[0]
    keys = (keys,) if isinstance(keys, str) else cast("tuple[str, ...]", keys)
    return Act(verb="deletes", things=tuple(words.name(event, key) for key in keys), plural="files")


def _rename(words: _Words, event: Event) -> Act:
    source, target = (words.name(event, str(key)) for key in event.call.args[:2])
    if layout.is_hidden(str(event.call.args[1])) and target != "_SUCCESS":
        return Act(verb="renames", things=(source,), plural="files", tail=f" to {target}")
    return Act(verb="renames", things=(target,), plural="files", tail=" into place")


def _copy(words: _Words, event: Event) -> Act:
    return Act(verb="copies a file to", things=(words.name(event, str(event.call.args[1])),), plural="places")


def _upload(verb: str, thing: str, weight: Weight, words: _Words, event: Event) -> Act:
    return Act(verb=verb, things=(thing,), plural=f"{thing.partition(' ')[2]}s", weight=weight)


def _complete(words: _Words, event: Event) -> Act:
    return Act(verb="completes", things=(words.name(event, str(event.call.args[0])),), plural="uploads")


def _abort(words: _Words, event: Event) -> Act:
    owner = words.owner(str(event.call.args[1]))
    whose = "its upload" if owner == event.actor else f"the upload of {owner}"
    return Act(verb="aborts", things=(f"{whose} to {words.name(event, str(event.call.args[0]))}",), plural="uploads")


_STORE_ACTS: dict[str, _ActOf] = {
    "get": partial(_look, "reads"),
    "head": partial(_look, "looks at"),
    "list_page": partial(_look, "lists"),
    "list_rest": partial(_look, "goes on to list"),
    "list_uploads_page": partial(_look, "lists the uploads below"),
    "notes": lambda words, event: Act(verb="looks at the clock", weight=Weight.READ),
    "stroke": lambda words, event: Act(verb="starts a job and ends it", weight=Weight.TURN),
    "begin_write": partial(_look, "opens"),
    "put": _put,
    "finish_write": _write,
    "delete": _delete,
    "delete_many": _delete,
    "rename": _rename,
    "rename_dir": _rename,
    "check_targets": _check,
    "copy": _copy,
    "create_upload": partial(_upload, "starts", "an upload", Weight.SMALL),
    "upload_part": partial(_upload, "uploads", "a hidden file", Weight.WORK),
    "complete_upload": _complete,
    "abort_upload": _abort,
}


# --- calls of the cluster ---------------------------------------------------------------------------------------------
def _says(verb: str, weight: Weight, words: _Words, event: Event) -> Act:
    return Act(verb=verb, weight=weight)


def _post_job(words: _Words, event: Event) -> Act:
    return Act(verb="starts", things=(f"job {short(cast('JobRecord', event.call.args[0]).job)}",))


def _await_tasks(words: _Words, event: Event) -> Act:
    if event.alternative is None:
        return Act(verb="has its tasks' reports")
    return Act(verb="sees that the job cannot go on" if event.reply is None else "has its tasks' reports")


def _may_commit(words: _Words, event: Event) -> Act:
    return Act(verb="may not commit" if event.reply is False else "may commit")


def _report(words: _Words, event: Event) -> Act:
    task, attempt = cast("tuple[int, int]", event.call.args[:2])
    before, after = (_cluster(view).accepted[task] for view in (event.before, event.after))
    if event.alternative is None:
        return Act(verb="reports")
    counts = before is None and after is not None and after[0] == attempt
    return Act(verb="reports", tail=f", which the driver {'accepts' if counts else 'drops'}")


def _lose(words: _Words, event: Event) -> Act:
    who = event.label.removeprefix("cuts off ")
    return Act(verb="cuts off", things=(who,), tail=" from the driver", weight=Weight.TURN)


def _take_over(words: _Words, event: Event) -> Act:
    purpose = event.label.removeprefix("to ")
    return Act(verb="takes the job over", tail=f" to {purpose} it", weight=Weight.TURN)


def _tell(words: _Words, event: Event) -> Act:
    outcome, detail = event.call.args
    if outcome == "read":
        paths = cast("tuple[int, int, tuple[str, ...]]", detail)[2]
        return Act(verb="has read", things=tuple(map(short, paths)), plural="files")
    if outcome == "recovered":
        jobs = [f"{action} job {short(job)}" for job, action in cast("tuple[tuple[str, str], ...]", detail)]
        return Act(verb="is done:", things=tuple(jobs) or ("nothing to recover",), weight=Weight.TURN)
    texts = {
        "committed": "says that the job is committed" + ("" if detail is not False else ", with work left to do"),
        "aborted": "says that the job is aborted" + ("" if detail is not False else ", with work left to do"),
    }
    return Act(verb=texts.get(str(outcome), f"ends without success ({outcome}: {detail})"), weight=Weight.TURN)


_CLUSTER_ACTS: dict[str, _ActOf] = {
    "post_job": _post_job,
    "await_tasks": _await_tasks,
    "begin": partial(_says, "starts", Weight.SMALL),
    "may_commit": _may_commit,
    "report": _report,
    "fail": partial(_says, "fails", Weight.WORK),
    "lose": _lose,
    "cancel": partial(_says, "cancels the job", Weight.TURN),
    "take_over": _take_over,
    "restart": partial(_says, "goes on with the job as its next attempt", Weight.TURN),
    "take_for_dead": partial(_says, "takes the driver for dead", Weight.TURN),
    "await_end": partial(_says, "comes when the driver is gone", Weight.TURN),
    "turn": partial(_says, "goes on with another thread", Weight.READ),
    "offer": partial(_says, "has what it wants to commit", Weight.SMALL),
    "tell": _tell,
}
