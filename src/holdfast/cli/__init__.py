"""Hold the command line, a module or a folder for each command: start at `app`; for users: docs/reference/cli.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.cli.app import cli

__all__ = ["cli", "main"]


def main() -> None:
    """Run ``holdfast`` with the arguments of this process, and exit; Ctrl-C also works while modules are loading."""
    try:
        from holdfast.cli.app import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


def __getattr__(name: str) -> object:
    if name == "cli":
        from holdfast.cli.app import cli

        return cli
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
