"""Build an archive of Spark's classes that every JVM of the tests maps: ``python -m tests.class_archive``.

A starting Spark spends half of its time loading and verifying some ten thousand classes from jars. With an archive
(JEP 350) Java maps them ready-made. A JVM writes the archive when it exits, if an option tells it to. The archive
belongs to one Java, one PySpark and one set of options; it is stored in the virtual environment. Without an archive the
tests pass as well, only more slowly.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["QUICK_JAVA", "find_archive", "java_options", "main"]

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""Options for short-lived JVMs on few cores: no second compiler, no threads for collection, no statistics file."""

_QUIET = "-Xlog:cds*=off"  # skip an archive that does not match without a message
_PATIENCE_S = 900


def java_options() -> str:
    """Return the options with which the tests start every JVM of Spark."""
    archive = find_archive()
    return f"{QUICK_JAVA} {_QUIET} -XX:SharedArchiveFile={archive}" if archive.exists() else QUICK_JAVA


def find_archive() -> Path:
    """Return the path of the archive for this Java and this PySpark, whether or not it exists."""
    import pyspark

    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")
    identity = (
        f"{java.resolve()} {_stamp(java.resolve())} {Path(pyspark.__file__).resolve()} {pyspark.__version__} "
        f"{QUICK_JAVA}"
    )
    return Path(sys.prefix) / f"spark-classes-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.jsa"


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "none"
    return f"{found.st_size} {found.st_mtime_ns}"


def main() -> int:
    """Build the archive if it does not exist. Return 0 in any case: the tests pass without it."""
    archive = find_archive()
    if archive.exists():
        return 0
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "classes.jsa"
        options = f"{QUICK_JAVA} -Xlog:disable -XX:ArchiveClassesAtExit={made}"
        paths = os.pathsep.join([str(Path(__file__).parents[1] / "src"), str(Path(__file__).parents[1])])
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": paths,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": options,
        }
        print("holdfast: building an archive of Spark's classes for the tests (once)", file=sys.stderr)
        try:
            subprocess.run(
                [sys.executable, "-m", "tests.archived_work", folder],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
                check=False,
            )
            beside = archive.with_suffix(f".{os.getpid()}")
            shutil.copyfile(made, beside)
            beside.replace(archive)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"holdfast: no archive of Spark's classes: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
