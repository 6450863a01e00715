"""Committers that publish output before the job commits: `direct`, `stocator`, `emr`. For comparison only.

Do not write data with them. They register as committers (entry points of `holdfast.committers`), so that the checker,
benchmarks and tests can run them by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.commit import COMMITTERS, Committer
from holdfast_checker.specimens.direct import DIRECT
from holdfast_checker.specimens.emr import EMR
from holdfast_checker.specimens.stocator import STOCATOR

__all__ = ["COMPARED", "DIRECT", "EMR", "SPECIMENS", "STOCATOR"]

SPECIMENS: Mapping[str, Committer] = {one.name: one for one in (DIRECT, STOCATOR, EMR)}
"""The specimens by name."""

COMPARED: Mapping[str, Committer] = {**COMMITTERS, **SPECIMENS}
"""The committers of the table of guarantees: those of the product, and the specimens."""
