"""Print the table of docs/reference/stores.md: ``python -m tests.integration.stores_table [SERVER...]``.

Runs the conformance suite, with races of 8 drivers in 40 rounds, on each server that is installed here, one after the
other, and prints what was found as rows of Markdown; with ``--failed`` also each check that failed, for the deviations
of test_foreign_servers.py.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.cli.check_store import StoreFindings, judge_committer_safety
from holdfast.commit import get_committer
from holdfast.errors import UnavailableError
from holdfast.runtime import SystemIds
from holdfast.s3_server import SeaweedServer
from holdfast.stores.base import Support
from holdfast.stores.conformance import run_conformance
from holdfast.stores.conformance.topics import TOPICS, findings
from holdfast.stores.probe import find_upload_listing_support, store_heeds_conditions
from holdfast.stores.s3 import S3Options
from holdfast.stores.s3.store import S3Store
from tests.integration.foreign_servers import BUCKET, RECIPES, running
from tests.servers.moto import MotoServer

__all__ = ["SUBJECTS", "tried"]

_DRIVERS, _ROUNDS = 8, 40
SUBJECTS = {"weed": "SeaweedFS 4.48", "moto": "moto 5.2"} | {name: recipe.title for name, recipe in RECIPES.items()}
"""Servers by name, in the order of the table."""


@contextlib.contextmanager
def _started(name: str) -> Iterator[S3Options]:
    if name in RECIPES:
        with running(RECIPES[name]) as options:
            yield options
    else:
        with SeaweedServer() if name == "weed" else MotoServer() as server:
            server.create_bucket(BUCKET)
            yield server.options


def tried(options: S3Options) -> StoreFindings:
    """Return the findings of the suite on a server."""
    handles = [S3Store(BUCKET, options) for _ in range(_DRIVERS)]
    try:
        report = run_conformance(handles[0], handles[1], prefix="suite", racers=handles, rounds=_ROUNDS)
        heeds = store_heeds_conditions(handles[0], "probe/", SystemIds())
        return StoreFindings(
            url=f"s3://{BUCKET}",
            capabilities=replace(handles[0].capabilities, conditional_put=Support.YES if heeds else Support.NO),
            results=report.results,
            heeds_conditions=heeds,
            upload_listing=find_upload_listing_support(handles[0], "probe/"),
        )
    finally:
        for handle in handles:
            handle.close()


def _rows(reports: Mapping[str, StoreFindings]) -> Iterator[str]:
    yield "| | " + " | ".join(SUBJECTS[name] for name in reports) + " |"
    yield "|---|" + "---|" * len(reports)
    for topic in TOPICS:
        cells = []
        for report in reports.values():
            found = [one for one in findings(report.results) if one.topic is topic]
            cells.append("".join(_cell(one.checks, len(one.failed)) for one in found))
        if any(cells):
            yield f"| {topic.name} | " + " | ".join(cells) + " |"
    yield "| pending uploads are listed | " + " | ".join(one.upload_listing.value for one in reports.values()) + " |"
    for committer in ("two_phase", "magic"):
        chosen = get_committer(committer)
        words = (judge_committer_safety(chosen, one.capabilities, findings(one.results))[0] for one in reports.values())
        yield f"| `{committer}` | " + " | ".join(words) + " |"


def _cell(checks: int, failed: int) -> str:
    return "yes" if not failed else f"{checks - failed} of {checks}"


def main() -> None:
    """Test the named servers, or all, and print the table."""
    names = [name for name in sys.argv[1:] if not name.startswith("-")] or list(SUBJECTS)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # moto logs every request
    reports: dict[str, StoreFindings] = {}
    for name in names:
        if name in RECIPES and RECIPES[name].found() is None:
            print(f"{SUBJECTS[name]} is not installed: {RECIPES[name].install}, or make servers", file=sys.stderr)
            continue
        try:
            with _started(name) as options:
                reports[name] = tried(options)
        except UnavailableError as error:
            print(f"{SUBJECTS[name]} does not get to the end of the suite: {str(error)[:300]}", file=sys.stderr)
            continue
        if "--failed" in sys.argv:
            for check, error in reports[name].results.items():
                if error is not None:
                    print(f"{name} {check}: {str(error)[:300]}", file=sys.stderr)
    print("\n".join(_rows(reports)))


if __name__ == "__main__":
    main()
