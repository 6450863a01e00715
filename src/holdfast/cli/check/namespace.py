"""Run ``holdfast check namespace``."""

from __future__ import annotations

from holdfast.checker.namespace.scenes.catalog import SCENES, SMALL
from holdfast.checker.namespace.subject import NAMESPACE
from holdfast.cli.check.files import StoryFiles
from holdfast.cli.check.options import CheckOptions
from holdfast.cli.check.transactions import Checked, check_transactions
from holdfast.cli.output import Output

__all__ = ["check_namespace"]

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
