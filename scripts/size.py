"""Print how large the project is: code, modules, classes, functions, documentation, wheel and time of import.

Code lines are those with code: no comments, docstrings and blank lines. Words are those of all pages in Markdown.
"""

from __future__ import annotations

import ast
import io
import statistics
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = {"product": "src", "checker": "checker/src", "tests": "tests", "benchmarks": "benchmarks"}
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines of a module that hold code."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def row(name: str, paths: Iterable[Path]) -> str:
    """Return the figures of some modules as a row of a table."""
    modules, classes, functions = [], 0, 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        modules.append(code_lines(text, tree))
        classes += sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree))
        functions += sum(isinstance(node, FUNCTIONS) for node in ast.walk(tree))
    median, largest = statistics.median(modules or [0]), max(modules, default=0)
    return f"{name:32}{len(modules):>8}{sum(modules):>8}{classes:>8}{functions:>10}{median:>8.0f}{largest:>8}"


def words() -> int:
    """Count the words of the documentation."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "checker").glob("*.md")]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def wheel_kilobytes(folder: Path) -> float:
    """Build the wheel of a distribution, and return its size."""
    with tempfile.TemporaryDirectory() as target:
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", target]
        subprocess.run([*command, str(folder)], check=True)
        return sum(path.stat().st_size for path in Path(target).glob("*.whl")) / 1024


def import_ratio() -> float:
    """Return how long a process that imports Holdfast takes, over one that imports nothing: the best of ten."""

    def best(statement: str) -> float:
        times = []
        for _ in range(10):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    return best("import holdfast") / best("pass")


def main() -> None:
    """Print the table, with a line for each folder of the product and the checker if ``--folders`` is given."""
    print(f"{'':32}{'modules':>8}{'code':>8}{'classes':>8}{'functions':>10}{'median':>8}{'largest':>8}")
    for name, folder in PARTS.items():
        print(row(name, (ROOT / folder).rglob("*.py")))
        if "--folders" in sys.argv and name in ("product", "checker"):
            package = ROOT / folder / {"product": "holdfast", "checker": "holdfast_checker"}[name]
            for below in sorted(path for path in package.iterdir() if any(path.glob("*.py"))):
                print(row(f"  {below.name}/", below.rglob("*.py")))
    print(f"{words():,} words of documentation")
    if "--quick" not in sys.argv:
        for folder in (ROOT, ROOT / "checker"):
            print(f"{wheel_kilobytes(folder):,.0f} KB in the wheel of {folder.name if folder != ROOT else 'holdfast'}")
        print(f"import holdfast: {import_ratio():.2f} times the time of an empty process")


if __name__ == "__main__":
    main()
