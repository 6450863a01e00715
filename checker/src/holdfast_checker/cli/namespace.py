"""Run ``holdfast check namespace``."""

from __future__ import annotations

from holdfast.cli.output import Output
from holdfast_checker.cli.files import StoryFiles
from holdfast_checker.cli.options import CheckOptions
from holdfast_checker.cli.transactions import Checked, check_transactions
from holdfast_checker.namespace.scenes.catalog import SCENES, SMALL
from holdfast_checker.namespace.subject import NAMESPACE

_CHECKED = Checked(
    name="namespace",
    title="namespace: its operations, writers, leaders and collectors, on a database whose calls are steps",
    code=("holdfast.namespace",),
    subject=NAMESPACE,
    scenes=SCENES,
    small=SMALL,
)


def check_namespace(options: CheckOptions, files: StoryFiles, out: Output) -> bool:
    """Check the namespace and show the result; return True if no problem was found.

    Raises:
        Abort: the user interrupted the run; what was found so far has been shown.
    """
    return check_transactions(options, files, out, _CHECKED)
