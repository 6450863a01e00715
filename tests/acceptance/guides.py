"""Read the code blocks of a page of the documentation, and run them in their order."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["ROOT", "page", "python_examples", "run_examples"]

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    """Return the text of ``docs/<name>``."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def python_examples(name: str) -> list[str]:
    """Return every Python block of ``docs/<name>``, in its order."""
    return re.findall(r"```python\n(.*?)```", page(name), re.DOTALL)


def run_examples(name: str, names: dict[str, object]) -> None:
    """Run every Python block of ``docs/<name>``; each sees what the ones before it defined in `names`."""
    examples = python_examples(name)
    assert examples, f"docs/{name} has no example"
    for example in examples:
        exec(compile(example, f"docs/{name}", "exec"), names)
