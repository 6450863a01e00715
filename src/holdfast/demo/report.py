"""Report what the demo observed, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar


@dataclass(kw_only=True)
class ScenarioReport:
    """The observations of one scenario.

    Attributes:
        name: the scenario's name, ``a``, ``b`` or ``c``.
        title: a short description.
        looks_before: number of plain listings that ended before the decision.
        seen_before: the largest number of the job's files in any of these listings; must be 0.
        rows: number of rows that pyarrow read from the bucket afterwards.
        difference: describes how the rows differ from the source; empty if they do not.
        pending_uploads: number of pending uploads left in the bucket; must be 0.
        write_s: seconds from the start of the write to its end or to the driver's death.
        recover_s: seconds that ``holdfast recover`` took.
        events: what happened, one sentence each.
        problems: what is wrong, one sentence each.
    """

    name: str
    title: str
    looks_before: int = 0
    seen_before: int = 0
    files: int = 0
    rows: int = 0
    difference: str = ""
    pending_uploads: int = 0
    write_s: float = 0.0
    recover_s: float | None = None
    events: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class DemoReport:
    """The observations of the whole demo.

    Attributes:
        source_rows: number of rows in the source.
        scenarios: the reports of the scenarios, in the order in which they ran.
        kept_in: the directory with the server's data and the logs; None if it was removed.
    """

    COLUMNS: ClassVar[Sequence[str]] = (
        *("", "scenario", "listings\nbefore\ndecision", "files\nseen\nin them", "rows", "same as\nsource"),
        *("uploads\nleft", "seconds"),
    )

    source_rows: int
    scenarios: list[ScenarioReport] = field(default_factory=list)
    kept_in: Path | None = None

    @property
    def title(self) -> str:
        """Return the title of the table."""
        return f"{self.source_rows:,} flights through Spark local[2,4] into S3, by month"

    @property
    def verified(self) -> bool:
        """Check whether every scenario ended without a problem."""
        return bool(self.scenarios) and not self.problems()

    def problems(self) -> list[str]:
        """List the problems, with the name of the scenario."""
        return [f"scenario {one.name}: {problem}" for one in self.scenarios for problem in one.problems]

    def story(self) -> list[str]:
        """List what happened, with the name of the scenario."""
        return [f"{one.name}: {event}" for one in self.scenarios for event in one.events]

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the table."""
        return [
            (
                one.name,
                one.title,
                str(one.looks_before),
                str(one.seen_before),
                f"{one.rows:,}",
                "no" if one.difference else "yes",
                str(one.pending_uploads),
                f"{one.write_s:.1f}" + (f" + {one.recover_s:.1f}" if one.recover_s is not None else ""),
            )
            for one in self.scenarios
        ]

    def as_document(self) -> dict[str, object]:
        """Return the report as a JSON document."""
        return {
            "verified": self.verified,
            "source_rows": self.source_rows,
            "scenarios": [vars(one) for one in self.scenarios],
            "problems": self.problems(),
            "kept_in": None if self.kept_in is None else str(self.kept_in),
        }
