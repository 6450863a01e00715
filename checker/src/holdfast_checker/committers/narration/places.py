"""Describe in words what the keys of a job's files and records stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.commit import layout
from holdfast_checker.committers.output import HOME
from holdfast_checker.narrative.narrator import Event

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


def short(text: str) -> str:
    """Shorten each id in a key to the numbers of the actor that made it and of the id: ``part-00000-…1.1-c000.txt``."""
    return _IDS.sub(lambda found: f"…{int(found[0][-12:-8], 16):x}.{int(found[0][-8:], 16):x}", text)


def path_of(key: str) -> str:
    """Return a key relative to the destination; empty for the destination itself."""
    return "" if f"{key}/" == HOME else key.removeprefix(HOME)


def is_bookkeeping(name: str) -> bool:
    """Check whether `name`, from `PlaceNames.name`, names a record that decides nothing."""
    return name.startswith(_BOOKKEEPING) or name.endswith(("record", "marker"))


@dataclass(frozen=True, slots=True)
class PlaceNames:
    """Names for keys and for the actors that own them.

    Attributes:
        actors: names of the world's actors, in order.
    """

    actors: tuple[str, ...]

    def owner(self, token: str) -> str:
        """Return the actor that made a token; a token starts with the number of its actor."""
        number = int(token[:4], 16) - 1
        return self.actors[number] if 0 <= number < len(self.actors) else "another live job"

    def name(self, event: Event, key: str) -> str:
        """Describe what is stored at a key and to whom it belongs; for a visible file, return its shortened path."""
        path = path_of(key)
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
