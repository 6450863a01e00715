"""Read the code blocks of a documentation page and run them in order."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["ROOT", "page", "python_examples", "run_examples"]

ROOT = Path(__file__).parents[2]


_BUCKET = re.compile(r"s3a?://bucket/")


def page(name: str) -> str:
    """Return the text of ``docs/<name>``, or of the README."""
    path = ROOT / name if name == "README.md" else ROOT / "docs" / name
    return path.read_text(encoding="utf-8")


def python_examples(name: str) -> list[str]:
    """Return every Python block of a page, in order."""
    return re.findall(r"```python\n(.*?)```", page(name), re.DOTALL)


def run_examples(name: str, names: dict[str, object], bucket: Path | None = None) -> None:
    """Run every Python block of a page; each sees the `names` that the previous ones defined.

    Args:
        bucket: a directory that stands for ``s3://bucket/``.
    """
    examples = python_examples(name)
    assert examples, f"{name} has no example"
    for example in examples:
        code = example if bucket is None else _BUCKET.sub(f"{bucket}/", example)
        exec(compile(code, name, "exec"), names)
