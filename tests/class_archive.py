"""Spark's classes, loaded and checked once for all JVMs of the tests: ``python -m tests.class_archive``.

Half of the time in which Spark starts goes into loading some ten thousand classes from jars. Java can map them from an
archive instead (JEP 350), which it makes when a JVM that was told so ends. The archive lies in the virtual environment,
one for each Java and each PySpark; without one, everything runs as it does anyway, only slower.
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

QUICK_JAVA = "-XX:TieredStopAtLevel=1"
"""No test runs long enough to pay for Java's second compiler."""

_QUIET = "-Xlog:cds*=off"  # an archive that does not fit is passed over without a word
_PATIENCE_S = 300


def java_options() -> str:
    """What Spark's JVMs are started with in tests."""
    archive = find_archive()
    return f"{QUICK_JAVA} {_QUIET} -XX:SharedArchiveFile={archive}" if archive.exists() else QUICK_JAVA


def find_archive() -> Path:
    """Where the archive for this Java and this PySpark is, or would be."""
    import pyspark

    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")
    told = f"{java.resolve()} {_stamp(java.resolve())} {Path(pyspark.__file__).resolve()} {pyspark.__version__}"
    return Path(sys.prefix) / f"spark-classes-{hashlib.sha256(told.encode()).hexdigest()[:12]}.jsa"


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "none"
    return f"{found.st_size} {found.st_mtime_ns}"


def main() -> int:
    """Make the archive if there is none. Always 0: the tests pass without it."""
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
        print("holdfast: making an archive of Spark's classes for the tests (once)", file=sys.stderr)
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
