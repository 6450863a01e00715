"""Resolve the jars of the suites with Maven, and compile what binds them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["FOLDER", "build_class_path", "find_java", "missing_tool"]

FOLDER = Path(__file__).parent
_LIMIT_S = 1800
"""For Maven, which fetches about 105 MB when it runs for the first time."""


def find_java(program: str = "java") -> str:
    """Return the path of a program of the JDK: that of ``JAVA_HOME``, else that on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / program) if home else (shutil.which(program) or program)


def missing_tool() -> str:
    """Return what is missing to run the suites; an empty text if nothing is."""
    if shutil.which("mvn") is None:
        return "Hadoop's contract suites need Maven: install it"
    try:
        found = subprocess.run([find_java("javac"), "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return "Hadoop's contract suites need a JDK: install one of version 17 or later, and set JAVA_HOME"
    version = int(found.stdout.split()[1].partition(".")[0])
    return "" if version >= 17 else f"Hadoop's contract suites need JDK 17 or later, not {version}: set JAVA_HOME"


def build_class_path(build: Path, *, with_reference: bool = False) -> str:
    """Compile into a directory; return the class path.

    Args:
        with_reference: whether stock HDFS is wanted, too.
    """
    sources, profile = ["src"], []
    if with_reference:
        sources, profile = ["src", "reference"], ["-Preference"]
    listed = build / "class-path"
    maven = ["mvn", "-q", "-B", "-f", str(FOLDER / "pom.xml"), *profile, "dependency:build-classpath"]
    subprocess.run([*maven, f"-Dmdep.outputFile={listed}"], check=True, timeout=_LIMIT_S)
    jars = listed.read_text()
    files = [str(path) for name in sources for path in sorted((FOLDER / name).rglob("*.java"))]
    compiler = [find_java("javac"), "-nowarn", "-proc:none", "-d", str(build / "classes"), "-cp", jars]
    subprocess.run([*compiler, *files], check=True, timeout=_LIMIT_S)
    return os.pathsep.join([str(build / "classes"), str(FOLDER / "resources"), jars])
