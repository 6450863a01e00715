"""Run ``holdfast namespace gc``: do the background work of a namespace, once or again and again."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from holdfast.cli.arguments import age
from holdfast.cli.namespace.sweep import sweep_namespace
from holdfast.cli.output import Output, duration
from holdfast.cli.session import Session, lists_from_namespaces
from holdfast.errors import ConflictError, FencedError, HoldfastError, OutcomeUnknownError, UnavailableError
from holdfast.wording import counted

if TYPE_CHECKING:
    from holdfast.namespace import Namespace
    from holdfast.namespace.collector import Collected
    from holdfast.namespace.leader import Election
    from holdfast.runtime import Clock

_EPILOG = """\b
Examples:
  holdfast namespace gc prod
  holdfast namespace gc prod --every 1h
  holdfast namespace gc prod --sweep

Removes what is below deleted directories, deletes blobs that no file has referred to for the safety age of the
namespace, and closes the files of dead writers. Of several processes, one works and the others do nothing: so run it
on as many machines as you like, from cron or with --every. It is safe to interrupt."""

_RENEWAL_S = 10.0


def _interval(text: str) -> float:
    """Parse a number of seconds, or a duration such as 15m."""
    seconds = age(f"{text}s" if text.isascii() and text.isdigit() else text)
    if seconds < 1:
        raise click.BadParameter("the interval is at least a second")
    return seconds


@click.command(epilog=_EPILOG)
@click.argument("name")
@click.option("--every", type=_interval, metavar="SECONDS", help="Work again after so many seconds, or after 15m, 1h …")
@click.option("--sweep", is_flag=True, help="Also look for blobs that no file refers to: reads every record.")
@lists_from_namespaces
def gc(name: str, every: float | None, sweep: bool, session: Session, out: Output) -> None:
    """Do the background work of the namespace NAME."""
    from holdfast.namespace.leader import Election
    from holdfast.runtime import SystemClock, SystemIds

    namespace, clock = session.open_named(name), SystemClock()
    token = f"{os.uname().nodename}:{os.getpid()}:{SystemIds().token()}"
    work = _Work(namespace, Election(namespace.database, clock, token), clock, out, sweep, is_service=every is not None)
    work.once()
    while every is not None:
        clock.sleep(every)
        try:
            work.once()
        except (UnavailableError, OutcomeUnknownError) as error:
            out.note(f"error: {error}")
            out.line({"error": str(error), "kind": type(error).__name__})


@dataclass
class _Work:
    """The background work of one namespace.

    Attributes:
        sweeps: whether to look for blobs that no file refers to, first.
        is_service: whether there will be other rounds: then a sweep that another sweep or a repair prevents is left to
            the next one.
        renew_at_s: when to renew the term, seconds of the monotonic clock.
    """

    namespace: Namespace
    election: Election
    clock: Clock
    out: Output
    sweeps: bool
    is_service: bool
    renew_at_s: float = 0.0

    def once(self) -> None:
        """Do all that there is to do, unless another process leads; report it."""
        if not self.election.lead():
            self.out.line({"leads": False})
            self.out.say("another process is at work: nothing was done")
            return
        self.renew_at_s = self.clock.elapsed_s() + _RENEWAL_S
        swept: dict[str, int] = {}
        try:
            if self.sweeps:
                swept = self._sweep()
            with self.out.waiting("collecting") as show:

                def goes_on(done: Collected) -> bool:
                    show(f"collecting: {_sentence(done)}")
                    return self._leads()

                done = self.namespace.collect(after_step=goes_on)
        finally:
            with contextlib.suppress(HoldfastError):  # the term ends by itself
                self.election.resign()
        self.out.line({"leads": True, **asdict(done)} | ({"swept": swept} if self.sweeps else {}))
        self.out.say(_sentence(done))
        self._tell_what_waits()

    def _sweep(self) -> dict[str, int]:
        try:
            return asdict(sweep_namespace(self.namespace, self.out))
        except (ConflictError, FencedError) as error:
            if not self.is_service:
                raise
            self.out.note(f"no sweep this time: {error}")
            return {}

    def _tell_what_waits(self) -> None:
        """Say why bytes are not free yet."""
        from holdfast.cli.namespace.pending import count_garbage

        waiting = count_garbage(self.namespace)
        if waiting.number:
            age = duration(self.namespace.configuration.safety_age_s)
            self.out.say(f"kept for the safety age, {age}: {waiting} {'blob' if waiting.number == 1 else 'blobs'}")

    def _leads(self) -> bool:
        """Renew the term from time to time; return whether this process still leads."""
        now_s = self.clock.elapsed_s()
        if now_s < self.renew_at_s:
            return True
        self.renew_at_s = now_s + _RENEWAL_S
        return self.election.lead()


def _sentence(done: Collected) -> str:
    parts = [
        (done.trees, f"removed {counted(done.trees, 'directory', 'directories')}"),
        (done.files, f"removed {counted(done.files, 'file')}"),
        (done.blobs, f"deleted {counted(done.blobs, 'blob')}"),
        (done.leases, f"closed {counted(done.leases, 'file')} of dead writers"),
    ]
    return ", ".join(words for number, words in parts if number) or "nothing to remove"
