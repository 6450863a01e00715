"""Run ``holdfast check units``."""

from __future__ import annotations

from holdfast.checker.units.scenes import SCENES, SMALL
from holdfast.checker.units.subject import UNITS
from holdfast.cli.check.files import StoryFiles
from holdfast.cli.check.options import CheckOptions
from holdfast.cli.check.transactions import Checked, check_transactions
from holdfast.cli.output import Output

__all__ = ["check_units"]

_CHECKED = Checked(
    name="units",
    title="units: attempts at tasks, and workers of a work list, on a database whose calls are steps",
    code=("holdfast.units", "holdfast.records.cell_transaction"),
    subject=UNITS,
    scenes=SCENES,
    small=SMALL,
)


def check_units(options: CheckOptions, files: StoryFiles, out: Output) -> bool:
    """Check computation units and show the result; return True if no problem was found.

    Raises:
        Abort: the user interrupted the run; what was found so far has been shown.
    """
    return check_transactions(options, files, out, _CHECKED)
