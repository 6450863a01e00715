"""Check that scripts/run builds the environment only when it must, and explains in one sentence what it cannot do."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.tidy.source_tree import ROOT

_TOOLS = ("awk", "bash", "cat", "chmod", "cksum", "cp", "dirname", "env", "id", "mkdir", "tail", "touch")

# A fake Python: it creates an "environment" that contains a copy of itself, and records what pip is asked to install.
_PYTHON = """#!/usr/bin/env bash
case "$*" in
    *version_info*2*) echo 3.12 ;;
    *ensurepip*) exit "${NO_VENV_MODULE:-0}" ;;
    --version) echo "Python 3.12.0" ;;
    "-m venv --clear "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" && echo "venv" >>"$CALLS" ;;
    "-m pip install "*) echo "pip ${*: -1}" >>"$CALLS"; exit "${PIP_STATUS:-0}" ;;
esac
"""


class Checkout:
    """A copy of the script with fakes only: it sees no Python, Java or package manager of this machine."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        self.bin = folder / "bin"
        self.calls = folder / "calls"
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "run", self.root / "scripts" / "run")
        (self.root / "checker").mkdir()
        for name in ("requirements.lock", "requirements-build.lock", "pyproject.toml", "checker/pyproject.toml"):
            (self.root / name).write_text("first\n")
        self.bin.mkdir()
        for tool in _TOOLS:
            found = shutil.which(tool)
            assert found, f"install {tool}: scripts/run needs it"
            (self.bin / tool).symlink_to(found)

    def add(self, name: str = "python3", program: str = _PYTHON) -> None:
        (self.bin / name).write_text(program)
        (self.bin / name).chmod(0o755)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "scripts" / "run", *arguments],
            env={"PATH": str(self.bin), "CALLS": str(self.calls), **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def take_calls(self) -> list[str]:
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return calls


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def _everything(root: Path) -> list[str]:
    return ["venv", f"pip {root}/requirements-build.lock", f"pip {root}/requirements.lock", f"pip {root}/checker"]


def test_the_first_run_builds_and_the_second_only_looks(checkout: Checkout) -> None:
    checkout.add()
    assert checkout.run("bash", "-c", "exit 0").returncode == 0
    assert checkout.take_calls() == _everything(checkout.root)
    second = checkout.run("bash", "-c", "echo here")
    assert (second.returncode, second.stdout, second.stderr) == (0, "here\n", "")
    assert checkout.take_calls() == []


def test_a_changed_lock_builds_anew(checkout: Checkout) -> None:
    checkout.add()
    checkout.run("bash", "-c", "exit 0")
    checkout.take_calls()
    (checkout.root / "requirements.lock").write_text("second\n")
    assert checkout.run("bash", "-c", "exit 0").returncode == 0
    assert checkout.take_calls()[:3] == _everything(checkout.root)[:3]


def test_a_changed_pyproject_installs_the_project_alone(checkout: Checkout) -> None:
    checkout.add()
    checkout.run("bash", "-c", "exit 0")
    checkout.take_calls()
    changed_s = (checkout.root / ".venv" / "installed").stat().st_mtime + 5
    os.utime(checkout.root / "pyproject.toml", (changed_s, changed_s))
    assert checkout.run("bash", "-c", "exit 0").returncode == 0
    assert checkout.take_calls() == [f"pip {checkout.root}/checker"]


def test_a_moved_checkout_builds_anew(checkout: Checkout) -> None:
    """The programs in a virtual environment contain its path."""
    checkout.add()
    checkout.run("bash", "-c", "exit 0")
    checkout.take_calls()
    checkout.root = checkout.root.rename(checkout.root.with_name("elsewhere"))
    assert checkout.run("bash", "-c", "exit 0").returncode == 0
    assert checkout.take_calls()[0] == "venv"


def test_a_build_that_failed_is_repeated(checkout: Checkout) -> None:
    checkout.add()
    failed = checkout.run("bash", "-c", "exit 0", PIP_STATUS="1")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith("holdfast: pip failed")
    checkout.take_calls()
    assert checkout.run("bash", "-c", "exit 0").returncode == 0
    assert checkout.take_calls() == _everything(checkout.root)


def test_the_command_gets_the_environment_and_its_status_passes_through(checkout: Checkout) -> None:
    checkout.add()
    run = checkout.run(
        "bash",
        "-c",
        'echo "$PYSPARK_PYTHON|$PYSPARK_DRIVER_PYTHON|$SPARK_LOCAL_IP|$NO_PROXY|${SPARK_HOME-}|${PYTHONPATH-}"; exit 7',
        NO_PROXY="inside.example",
        SPARK_HOME="/opt/spark",
        PYTHONPATH="/opt/other",
    )
    python = f"{checkout.root}/.venv/bin/python"
    assert run.returncode == 7
    assert run.stdout == f"{python}|{python}|127.0.0.1|inside.example,127.0.0.1,localhost||\n"


def test_a_newer_python_is_found_beside_an_old_one(checkout: Checkout) -> None:
    checkout.add("python3", "#!/usr/bin/env bash\nexit 1\n")
    checkout.add("python3.12")
    assert checkout.run("bash", "-c", "exit 0").returncode == 0


def test_an_old_python_is_refused_in_one_sentence(checkout: Checkout) -> None:
    checkout.add("python3", "#!/usr/bin/env bash\nexit 1\n")
    run = checkout.run("bash", "-c", "exit 0")
    assert run.returncode == 1
    assert run.stderr == (
        "holdfast: no Python 3.10 or newer on PATH: "
        "install one (Debian: apt-get install python3 python3-venv), then retry\n"
    )


def test_a_missing_venv_module_is_named_in_one_sentence(checkout: Checkout) -> None:
    checkout.add()
    run = checkout.run("bash", "-c", "exit 0", NO_VENV_MODULE="1")
    assert run.returncode == 1
    assert run.stderr == (
        "holdfast: Python 3.12 lacks its venv module: "
        "install it (Debian: apt-get install python3.12-venv), then retry\n"
    )


def test_no_command_is_refused(checkout: Checkout) -> None:
    run = checkout.run()
    assert (run.returncode, run.stderr) == (
        1,
        "holdfast: no command given: scripts/run [--java] [--databases] COMMAND [ARGUMENT...]\n",
    )


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_is_used_where_it_is_new_enough(checkout: Checkout, version: str) -> None:
    checkout.add()
    home = _add_java(checkout, version)
    run = checkout.run("--java", "bash", "-c", "echo $JAVA_HOME", JAVA_HOME=str(home))
    assert (run.returncode, run.stdout) == (0, f"{home}\n")


@pytest.mark.parametrize("version", ["1.8", "11"])
def test_an_old_java_home_is_passed_over(checkout: Checkout, version: str) -> None:
    """The result depends on the machine: another Java, or the sentence that asks for one."""
    checkout.add()
    home = _add_java(checkout, version)
    run = checkout.run("--java", "bash", "-c", "echo $JAVA_HOME", JAVA_HOME=str(home))
    assert run.stdout != f"{home}\n"
    assert run.returncode == 0 or run.stderr.splitlines()[-1].startswith("holdfast: no Java 17 or newer found: install")


# A fake package manager that installs nothing, and records what it is asked to install.
_APT = """#!/usr/bin/env bash
if [ "$1" = install ]; then echo "apt ${*:5}" >>"$CALLS"; exit "${APT_STATUS:-0}"; fi
"""


def _run_with_databases(checkout: Checkout, user: int, **environment: str) -> subprocess.CompletedProcess[str]:
    checkout.add()
    checkout.add("apt-get", _APT)
    (checkout.bin / "id").unlink()
    checkout.add("id", f"#!/usr/bin/env bash\necho {user}\n")
    return checkout.run("--databases", "bash", "-c", "echo here", **environment)


def test_root_gets_the_programs_of_mariadb_without_its_service(checkout: Checkout) -> None:
    run = _run_with_databases(checkout, 0)
    assert (run.returncode, run.stdout) == (0, "here\n")
    assert checkout.take_calls()[-1] == "apt mariadb-server-core mariadb-client-core"


def test_a_machine_without_mariadb_runs_the_command(checkout: Checkout) -> None:
    run = _run_with_databases(checkout, 0, APT_STATUS="1")
    assert (run.returncode, run.stdout) == (0, "here\n")
    assert run.stderr.splitlines()[-1] == (
        "holdfast: MariaDB could not be installed: the tests that need it are skipped"
    )
    checkout.take_calls()
    assert _run_with_databases(checkout, 1000).returncode == 0
    assert checkout.take_calls() == []


def test_an_installed_mariadb_is_left_alone(checkout: Checkout) -> None:
    checkout.add("mariadbd", "#!/usr/bin/env bash\n")
    assert _run_with_databases(checkout, 0).returncode == 0
    assert "apt" not in " ".join(checkout.take_calls())


def _add_java(checkout: Checkout, version: str) -> Path:
    home = checkout.root.with_name(f"java-{version}")
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    said = [f"    java.specification.version = {version}", f"    java.home = {home}"]
    java.write_text("#!/usr/bin/env bash\n" + "".join(f"echo '{line}' >&2\n" for line in said))
    java.chmod(0o755)
    return home
