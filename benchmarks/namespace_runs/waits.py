"""Watch what Holdfast's connections to a PostgreSQL server do, or wait for, while a measurement runs."""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType

import psycopg

__all__ = ["WaitSampler"]

_INTERVAL_S = 0.02
_QUERY = """
SELECT state, wait_event_type, wait_event, count(*) FROM pg_stat_activity
WHERE application_name = 'holdfast' AND backend_type = 'client backend'
GROUP BY 1, 2, 3
"""


class WaitSampler:
    """Counts connections by what they do, many times in a second, from the start of a block to its end.

    Attributes:
        counts: sums over all samples.
        samples: their number.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.counts: Counter[str] = Counter()
        self.samples = 0

    def means(self) -> dict[str, float]:
        """Return how many connections were in each state on average, the largest number first."""
        return {state: round(count / self.samples, 1) for state, count in self.counts.most_common() if self.samples}

    def _watch(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._stop.wait(_INTERVAL_S):
                for state, kind, event, count in connection.execute(_QUERY).fetchall():
                    self.counts[_word(state, kind, event)] += count
                self.samples += 1

    def __enter__(self) -> WaitSampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()


def _word(state: str | None, kind: str | None, event: str | None) -> str:
    if state == "idle in transaction":
        return "holds locks while the client works"
    if state != "active":
        return "idle"
    return "at work" if kind is None else f"waits for {kind} {event}"
