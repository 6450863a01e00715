"""Run ``holdfast check units``."""

from __future__ import annotations

from holdfast.cli.output import Output
from holdfast_checker.cli.files import StoryFiles
from holdfast_checker.cli.options import CheckOptions
from holdfast_checker.cli.transactions import Checked, check_transactions
from holdfast_checker.units.scenes import SCENES, SMALL
from holdfast_checker.units.subject import UNITS

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
