"""Define the command line, with a module or folder for each command.

Start reading at `app`. The commands are documented for users in docs/reference/cli.md.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.cli.app import cli

__all__ = ["cli", "main"]


def main() -> None:
    """Run ``holdfast`` with the arguments of this process, and exit; Ctrl-C works even while modules are loading."""
    try:
        from holdfast.cli.app import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except ModuleNotFoundError as error:
        from holdfast.cli.failures import WRONG_USAGE, as_holdfast_error

        known = as_holdfast_error(error)
        if known is None:
            raise
        print(f"error: {known}", file=sys.stderr)
        raise SystemExit(WRONG_USAGE) from None
    run()


def __getattr__(name: str) -> object:
    if name == "cli":
        from holdfast.cli.app import cli

        return cli
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
