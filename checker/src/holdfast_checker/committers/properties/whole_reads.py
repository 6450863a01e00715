"""Check that a reader that uses Holdfast never sees only part of a job."""

from __future__ import annotations

from typing import cast

from holdfast_checker.committers.property_support import just_told
from holdfast_checker.committers.sandbox import Sandbox, cluster_of
from holdfast_checker.kernel.world import Property, View


def whole_reads(sandbox: Sandbox) -> Property:
    """Return the property that the result of `read_snapshot` contains all files of the job or none."""
    whole = sandbox.setting.tasks * sandbox.setting.files

    def step(before: View, after: View, actor: str) -> str | None:
        job = cluster_of(after).job
        for told in just_told(before, after):
            if told.outcome == "read" and job is not None:
                seen = [path for path in cast("tuple[int, int, tuple[str, ...]]", told.detail)[2] if job.job in path]
                if len(seen) not in (0, whole):
                    return f"the reader sees {len(seen)} of the job's {whole} files"
        return None

    return Property(
        name="whole-reads",
        title="whole reads",
        meaning="a reader through Holdfast sees all of a job or nothing",
        step=step,
    )
