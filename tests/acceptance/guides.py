"""Read the code blocks of a documentation page, run them in order, and compare what they print with the page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.patience import PATIENCE_S

__all__ = ["ROOT", "assert_shown", "blocks", "page", "python_examples", "run_examples", "run_steps", "shell_blocks"]

ROOT = Path(__file__).parents[2]


_BUCKET = re.compile(r"s3a?://bucket/")


def page(name: str) -> str:
    """Return the text of ``docs/<name>``, or of the README."""
    path = ROOT / name if name == "README.md" else ROOT / "docs" / name
    return path.read_text(encoding="utf-8")


def python_examples(name: str) -> list[str]:
    """Return every Python block of a page, in order."""
    return re.findall(r"```python\n(.*?)```", page(name), re.DOTALL)


def blocks(name: str) -> list[str]:
    """Return every shell, Python and text block of a page, in order."""
    return [step["body"] for step in _STEP.finditer(page(name)) if step["kind"]]


def shell_blocks(name: str) -> list[str]:
    """Return every shell block of a page, in order, but those that the page leaves out."""
    return [step["body"] for step in _STEP.finditer(page(name)) if step["kind"] == "sh" and not step["skip"]]


def run_examples(name: str, names: dict[str, object], bucket: Path | None = None) -> None:
    """Run every Python block of a page; each sees the `names` that the previous ones defined.

    Args:
        bucket: a directory that stands for ``s3://bucket/``.
    """
    examples = python_examples(name)
    assert examples, f"{name} has no example"
    for example in examples:
        code = example
        if bucket is not None:
            code = _BUCKET.sub(f"{bucket}/", example)
        exec(compile(code, name, "exec"), names)


_STEP = re.compile(
    r"(?P<skip><!-- not run: .+? -->\n)?```(?P<kind>sh|python|text)\n(?P<body>.*?)```|Save this as `(?P<file>[a-z.]+)`",
    re.DOTALL,
)


def _pattern(line: str) -> str:
    """Return a pattern for a line, in which ``…`` stands for any text and columns may have other widths."""
    return ".*".join(r"\s+".join(map(re.escape, part.split(" "))) for part in re.sub(" +", " ", line).split("…"))


def assert_shown(shown: str, printed: str) -> None:
    """Check that each line of the page was printed, in this order, perhaps with other lines in between."""
    lines = iter(printed.splitlines())
    for line in shown.splitlines():
        pattern = re.compile(_pattern(line.strip()))
        assert any(pattern.search(one) for one in lines), f"the page shows {line!r}, printed was:\n{printed}"


def run_steps(name: str, directory: Path, environment: Mapping[str, str]) -> int:
    """Run the shell blocks of a page as a reader would type them, and compare what they print with its text blocks.

    A comment ``<!-- not run: why -->`` above a block leaves it out. A Python block is saved as the file that the page
    names, if it names one.

    Returns:
        The number of blocks that were run.
    """
    file_name, printed, ran = "", "", 0
    for step in _STEP.finditer(page(name)):
        if step["file"]:
            file_name = step["file"]
        elif step["kind"] == "python":
            if file_name:
                (directory / file_name).write_text(step["body"])
        elif step["kind"] == "text":
            assert_shown(step["body"], printed)
        elif not step["skip"]:
            run = subprocess.run(
                ["bash", "-e", "-c", step["body"]],
                cwd=directory,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
            printed = run.stdout
            assert run.returncode == 0, run.stderr
            ran += 1
    return ran
