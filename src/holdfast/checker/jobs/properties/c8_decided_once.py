"""C8: a job is either committed or aborted, for ever, whoever decides."""

from __future__ import annotations

from holdfast.checker.jobs.bench import Bench, cluster_of
from holdfast.checker.jobs.judging import in_words, of_main, was_told, winners
from holdfast.checker.kernel.world import Property, View

__all__ = ["decided_once"]


def decided_once(bench: Bench) -> Property:
    """No two drivers are told different outcomes, and what one was told is what recovery ends with."""

    def step(before: View, after: View, actor: str) -> str | None:
        committed, aborted = was_told(after, "committed"), was_told(after, "aborted")
        if committed and aborted:
            return f"{committed[0].who} was told that the job is committed, {aborted[0].who} that it is aborted"
        return None

    def end(view: View) -> str | None:
        found = bench.settled(view).visible()
        committed, aborted = was_told(view, "committed"), was_told(view, "aborted")
        if aborted and of_main(found):
            there = in_words(of_main(found).values())
            return f"{aborted[0].who} was told that the job is aborted, and after recovery there is {there}"
        lost = [one.missing for one in winners(cluster_of(view), found, bench.setting.files) if one.attempt is None]
        if committed and lost:
            who = committed[0].who
            return f"{who} was told that the job is committed, and after recovery there is no {in_words(lost[0])}"
        return None

    return Property(
        name="C8",
        title="decided once",
        meaning="committed or aborted, for ever, whoever decides",
        step=step,
        end=end,
    )
