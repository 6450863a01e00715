"""Run the demo: check the requirements, start the server, run the scenarios, leave nothing behind."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.demo.bucket import PlainBucket
from holdfast.demo.flights import extract_flights, read_flights
from holdfast.demo.report import DemoReport
from holdfast.demo.scenarios import SCENARIOS, World
from holdfast.errors import UnsupportedError
from holdfast.runtime import SystemClock
from holdfast.stores.s3.options import S3Options
from holdfast.testing.isolation import isolated_environment
from holdfast.testing.weed import SeaweedServer

_BUCKET = "demo"


def run_demo(scenarios: Sequence[str], *, keep: bool = False, tell: Callable[[str], None]) -> DemoReport:
    """Run scenarios and report what was observed.

    Guarantee: no process and, unless `keep` is set, no file is left, even after an error or Ctrl-C.

    Args:
        scenarios: the names of the scenarios to run, such as ``a``.
        keep: whether to keep the server's data and the logs.
        tell: called with a few words about the current step.

    Raises:
        UnsupportedError: something that the demo requires is not installed.
        UnavailableError: the server or a driver fails; the message contains the end of its log.
    """
    _require_parts()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    plain = None
    try:
        tell("unpacking the flights")
        source = extract_flights(folder)
        flights = read_flights(source)
        report = DemoReport(source_rows=flights.num_rows, kept_in=folder if keep else None)
        tell("starting the S3 server")
        with isolated_environment(), SeaweedServer(folder / "server") as server:
            server.create_bucket(_BUCKET)
            plain = PlainBucket(server.options, _BUCKET)
            world = World(
                options=server.options,
                bucket=_BUCKET,
                plain=plain,
                source=source,
                flights=flights,
                folder=folder,
                environment=_child_environment(server.options),
                clock=SystemClock(),
                tell=tell,
            )
            for name in dict.fromkeys(scenarios):
                report.scenarios.append(SCENARIOS[name](world))
        return report
    finally:
        if plain is not None:
            plain.close()
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _require_parts() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise UnsupportedError("the demo needs PySpark: pip install 'holdfast[demo]'")
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and shutil.which("java", path=f"{home}/bin"))):
        raise UnsupportedError("Spark needs Java 17 or newer: install it, or set JAVA_HOME")


def _child_environment(options: S3Options) -> dict[str, str]:
    environment = dict(os.environ)
    environment.update(
        AWS_ACCESS_KEY_ID=str(options.access_key),
        AWS_SECRET_ACCESS_KEY=str(options.secret_key),
        AWS_REGION=str(options.region),
        AWS_DEFAULT_REGION=str(options.region),
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_DRIVER_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
    )
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):  # use the PySpark of this installation, not another one
        environment.pop(name, None)
    return environment
