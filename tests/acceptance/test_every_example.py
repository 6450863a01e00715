"""Check that a test runs every example of the documentation, or that this module says why it cannot be run."""

from __future__ import annotations

import re

import pytest

from tests.acceptance.guides import ROOT

_BLOCK = re.compile(r"^ *```(\S*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)

RUN_BY = {
    "README.md": "tests/acceptance/test_spark_guide.py",
    "docs/explanation/two-phase.md": "tests/acceptance/test_protocol_example.py",
    "docs/how-to/choose-a-committer.md": "tests/acceptance/test_committers_guide.py",
    "docs/how-to/load-and-read-tables.md": "tests/acceptance/test_spark_guide.py",
    "docs/how-to/migrate-from-s3a.md": "tests/acceptance/test_spark_guide.py",
    "docs/how-to/read-tables.md": "tests/acceptance/test_spark_guide.py",
    "docs/how-to/read-with-other-tools.md": "tests/acceptance/test_spark_guide.py",
    "docs/how-to/run-the-checker.md": "tests/acceptance/test_checker_guide.py",
    "docs/how-to/run-units.md": "tests/acceptance/test_units_guide.py",
    "docs/how-to/serve-a-namespace.md": "tests/acceptance/test_serving_guide.py",
    "docs/how-to/use-a-namespace-with-spark.md": "tests/acceptance/test_spark_guide.py",
    "docs/how-to/use-sql.md": "tests/acceptance/test_spark_guide.py",
    "docs/how-to/use-tables.md": "tests/acceptance/test_database_guide.py",
    "docs/how-to/use-the-namespace-from-python.md": "tests/acceptance/test_namespace_guide.py",
    "docs/how-to/watch-a-job.md": "tests/acceptance/test_watching_guide.py",
    "docs/how-to/write-a-store.md": "tests/conformance/test_example_store.py",
    "docs/how-to/write-files.md": "tests/integration/test_spark_job_guide.py",
    "docs/how-to/write-streams.md": "tests/acceptance/test_streaming_guide.py",
    "docs/how-to/write-tables.md": "tests/acceptance/test_spark_guide.py",
    "docs/index.md": "tests/acceptance/test_spark_guide.py",
    "docs/tutorial/first-ten-minutes.md": "tests/acceptance/test_tutorial.py",
}
"""Pages with Python examples, and the test that runs each."""

SHELL_RUN_BY = {
    "README.md": "tests/acceptance/test_install.py",
    "docs/how-to/connect-to-s3.md": "tests/acceptance/test_s3_server_guide.py",
    "docs/how-to/install.md": "tests/acceptance/test_install.py",
    "docs/how-to/operate-a-namespace.md": "tests/acceptance/test_namespace_commands_guide.py",
    "docs/how-to/serve-a-namespace.md": "tests/acceptance/test_serving_guide.py",
    "docs/how-to/use-a-namespace-with-spark.md": "tests/acceptance/test_spark_guide.py",
    "docs/how-to/use-a-namespace.md": "tests/acceptance/test_namespace_commands_guide.py",
    "docs/how-to/use-tables.md": "tests/acceptance/test_database_guide.py",
    "docs/how-to/watch-a-job.md": "tests/acceptance/test_watching_guide.py",
    "docs/tutorial/first-ten-minutes.md": "tests/acceptance/test_tutorial.py",
}
"""Pages with shell examples, and the test that runs each."""

SHELL_NOT_RUN = {
    "docs/how-to/choose-a-committer.md": "its paths are made up; test_documented_commands.py checks the options",
    "docs/how-to/read-with-s3a.md": "it downloads jars with Maven; make integration runs the tests with them",
    "docs/reference/cli.md": "its files are made up; test_documented_commands.py checks the options",
}
"""Pages with shell examples that no test runs, with the reason."""


def _blocks(language: str) -> set[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        page.relative_to(ROOT).as_posix()
        for page in pages
        if "decisions" not in page.parts
        and any(re.fullmatch(language, block[1]) for block in _BLOCK.finditer(page.read_text(encoding="utf-8")))
    }


def test_every_page_with_python_is_run() -> None:
    assert _blocks("python") == set(RUN_BY)


@pytest.mark.parametrize("name", RUN_BY)
def test_the_test_names_its_page(name: str) -> None:
    text = (ROOT / RUN_BY[name]).read_text(encoding="utf-8")
    assert all(part in text for part in name.removeprefix("docs/").split("/")[-1:])


def test_shell_examples_are_run_or_listed() -> None:
    assert _blocks("sh|bash|console") - set(SHELL_RUN_BY) == set(SHELL_NOT_RUN)
    for name, test in SHELL_RUN_BY.items():
        assert name.removeprefix("docs/") in (ROOT / test).read_text(encoding="utf-8")
