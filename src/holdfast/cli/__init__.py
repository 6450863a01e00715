"""Define the command line, with a module or folder for each command.

Start reading at `app`. The commands are documented for users in docs/reference/cli.md.
"""

from __future__ import annotations


def main() -> None:
    """Run ``holdfast`` with the arguments of this process, and exit; Ctrl-C works even while modules are loading."""
    try:
        from holdfast.cli.app import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()
