"""Fill namespaces for tests, and show what is in them."""

from __future__ import annotations

import json

from click.testing import Result

from holdfast.namespace import Namespace
from tests.unit.cli.destinations import run

__all__ = ["fill", "lines", "run_fs", "shown"]


def fill(ns: Namespace, *paths: str) -> None:
    """Make directories (paths that end in a slash) and files, whose content is their path."""
    for path in paths:
        if path.endswith("/"):
            ns.mkdirs(path)
        else:
            ns.write_file(path, path.encode())


def shown(ns: Namespace) -> list[str]:
    """Return all paths of a namespace, those of directories with a slash."""
    return sorted(one.path + ("/" if one.is_directory else "") for one in ns.walk("/"))


def run_fs(*arguments: str, answer: str | None = None) -> Result:
    """Run ``holdfast fs`` in this process; ``:/path`` stands for ``holdfast://ns/path``."""
    return run("fs", *(f"holdfast://ns{one[1:]}" if one.startswith(":/") else one for one in arguments), answer=answer)


def lines(result: Result) -> list[dict[str, object]]:
    """Return the documents that a command printed, one on each line."""
    return [json.loads(line) for line in result.stdout.splitlines()]
