"""Check C8: a job is either committed or aborted, permanently, no matter who decides."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.commit.records import Kind
from holdfast_checker.committers.cluster import Told
from holdfast_checker.committers.ledger import ledger_in
from holdfast_checker.committers.output import DESTINATION
from holdfast_checker.committers.property_support import in_words, of_main, was_told, winners
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def decided_once(sandbox: Sandbox) -> Property:
    """Return the property C8: all drivers learn the same outcome, and recovery does not change it.

    If the committer keeps a log, the log contains at most one decision about the job, and this decision agrees with
    what the drivers learned.
    """
    keeps_log = sandbox.setting.committer.keeps_log

    def step(before: View, after: View, actor: str) -> str | None:
        committed, aborted = was_told(after, "committed"), was_told(after, "aborted")
        if committed and aborted:
            return f"{committed[0].who} was told that the job is committed, {aborted[0].who} that it is aborted"
        return None

    def end(view: View) -> str | None:
        found = sandbox.settled(view).visible()
        committed, aborted = was_told(view, "committed"), was_told(view, "aborted")
        if aborted and of_main(found):
            there = in_words(of_main(found).values())
            return (
                f"{aborted[0].who} was told that the job is aborted, and after recovery the destination shows {there}"
            )
        lost = [one.missing for one in winners(cluster_of(view), found, sandbox.setting.files) if one.attempt is None]
        if committed and lost:
            who = committed[0].who
            missing = in_words(lost[0])
            return f"{who} was told that the job is committed, and after recovery the destination lacks {missing}"
        return _other_in_log(view, committed, aborted) if keeps_log else None

    return Property(
        name="C8",
        title="decided once",
        meaning="committed or aborted, permanently, no matter who decides",
        step=step,
        end=end,
    )


def _other_in_log(view: View, committed: Sequence[Told], aborted: Sequence[Told]) -> str | None:
    """Describe how the log's decision about the job differs from what drivers learned.

    A driver may learn that the job is aborted although the log contains no decision, if no driver can commit the job
    anymore.
    """
    job = cluster_of(view).job
    if job is None:
        return None
    decisions = ledger_in(view, DESTINATION).decisions
    kinds = [Kind.COMMIT if one.commits else Kind.ABORT for one in decisions if one.job == job.job]
    if len(kinds) > 1:
        return f"the log decides the job more than once: {', then '.join(kind.value for kind in kinds)}"
    if committed and Kind.COMMIT not in kinds:
        return f"{committed[0].who} was told that the job is committed, and the log does not say so"
    if aborted and Kind.COMMIT in kinds:
        return f"{aborted[0].who} was told that the job is aborted, and the log says that it is committed"
    return None
