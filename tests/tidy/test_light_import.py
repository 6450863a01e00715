"""`import holdfast` loads nothing heavy: programs that only ask for its version or errors do not wait for Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest

import holdfast

_HEAVY = ["boto3", "botocore", "fastavro", "pandas", "pyarrow", "pyspark"]


@pytest.mark.parametrize("statement", ["import holdfast", "import holdfast.errors", "import holdfast.seams"])
def test_the_import_is_light(statement: str) -> None:
    program = f"import sys\n{statement}\nprint(*sorted(set({_HEAVY!r}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr, run.stdout.strip()) == (0, "", "")


def test_every_exported_name_is_there() -> None:
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None
    assert dir(holdfast) == holdfast.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'reed'"):
        holdfast.reed  # noqa: B018  # reading the attribute is the test
