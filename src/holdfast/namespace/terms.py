"""Judge the ends that others have written by their own clocks: of marks, locks and terms.

A process that dies leaves an end behind. If its clock was far ahead, that end would come in months, and nobody could
do its work until then. So an end that lies further in the future than its owner may ever set it, by a clock that is
ahead by no more than an hour, counts as over. As for every end, this is safe whatever the clocks say: who acts on what
it has lost finds out in the transaction that would need it.
"""

from __future__ import annotations

MOST_SKEW_S = 3600.0


def is_running(until_s: float, now_s: float, term_s: float) -> bool:
    """Check whether a term has not ended yet.

    Args:
        until_s: its end, by the clock of its owner, seconds since the epoch.
        now_s: the time by our own clock.
        term_s: how far ahead an owner sets the end.
    """
    return now_s < until_s <= now_s + term_s + MOST_SKEW_S
