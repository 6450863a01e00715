"""Install Holdfast as the pages say, in a fresh environment, and run the README there as printed, on a real S3 server.

No index is asked: everything that Holdfast depends on is taken from the environment of the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.s3_server import SeaweedServer
from tests.acceptance.guides import ROOT, page, python_examples, run_steps, shell_blocks
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.acceptance, pytest.mark.spark, pytest.mark.slow]

_NOT_TO_BE_INSTALLED = ("holdfast", "__editable__", "pip", "_distutils_hack", "distutils-precedence")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of what a wheel is built from."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture
def environment(tmp_path: Path, checkout: Path) -> dict[str, str]:
    """Return the environment of a shell in which ``venv`` in the checkout is active as soon as it exists."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(_NOT_TO_BE_INSTALLED):
            (packages / path.name).symlink_to(path)
    mine = {name: text for name, text in os.environ.items() if not name.startswith(("AWS_", "HOLDFAST_", "PYTHON"))}
    return {
        **mine,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PATH": f"{checkout}/venv/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(packages),
        "PYSPARK_PYTHON": f"{checkout}/venv/bin/python",
        "PYSPARK_DRIVER_PYTHON": f"{checkout}/venv/bin/python",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip takes this to mean: no isolation
    }


def _run(command: list[str], place: Path, environment: dict[str, str]) -> str:
    ended = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def test_the_commands_of_the_guide_install_it(checkout: Path, environment: dict[str, str]) -> None:
    assert run_steps("how-to/install.md", checkout, environment) == 2, "steps of the page were not found"
    where = _run(["python", "-c", "import holdfast; print(holdfast.__file__)"], checkout.parent, environment)
    assert Path(where.strip()).is_relative_to(checkout / "venv")
    assert len(list((checkout / "dist").glob("holdfast-*.whl"))) == 1


def test_the_readme_runs_as_printed(checkout: Path, environment: dict[str, str]) -> None:
    install, *commands = shell_blocks("README.md")
    _run(["bash", "-e", "-c", install], checkout, environment)
    script = checkout / "readme.py"
    script.write_text("\n".join(python_examples("README.md")))
    with SeaweedServer() as server:
        server.create_bucket("bucket")
        environment |= server.environment
        assert "84" in _run(["python", str(script)], checkout, environment).split()
        for block in commands:
            _run(["bash", "-e", "-c", block], checkout, environment)


def test_the_tutorial_names_the_checkout(checkout: Path, environment: dict[str, str], tmp_path: Path) -> None:
    text = page("tutorial/first-ten-minutes.md")
    install = text.split("```sh\n")[1].split("```")[0].replace("/path/to/holdfast", str(checkout))
    said = _run(["bash", "-e", "-c", f"{install}\nholdfast --version"], tmp_path, environment)
    assert said.splitlines()[-1].startswith("holdfast ")
