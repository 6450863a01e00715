"""Test the comparison with Hadoop's committer: its figures, and a small run. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql")

from benchmarks import peers
from benchmarks.peer_runs import PEER, TABLES, PeerRun


def _run(total_s: float, after_s: float = 1.0) -> PeerRun:
    return PeerRun(total_s=total_s, after_s=after_s, cpu_s=2 * total_s, requests=10)


def test_figures_are_medians_of_the_rounds_ratios() -> None:
    """A round on a busy machine is slow for all contenders, so its ratio counts like any other."""
    runs = {
        PEER: [_run(10), _run(100), _run(20, 2)],
        "two_phase": [_run(5), _run(20), _run(8)],
        "our magic": [_run(9), _run(90), _run(18)],
    }
    total, after = peers._results("small", TABLES["small"](1_000), runs)
    assert (total.figure, total.target, after.figure, after.target) == (0.4, 0.25, 1.0, 1.0)
    assert total.details["total, our magic, ratio"] == 0.9
    assert total.details["CPU, two_phase, ratio"] == 0.4
    assert total.details["requests, S3A magic, median"] == 10


def test_without_the_peer_there_is_no_ratio() -> None:
    (total,) = peers._results("large", TABLES["large"](10), {"two_phase": [_run(5)], "our magic": [_run(6)]})
    assert total.figure != total.figure and total.medians == {"two_phase": 5, "our magic": 6}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.s3
def test_ours_run_without_the_jars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--only", "small", "--files", "20", "--rounds", "1", "--results", str(tmp_path)]
    assert peers.main([*arguments, "--jars", str(tmp_path)]) == 0
    document = json.loads((tmp_path / "peers-small-total.json").read_text())
    assert set(document["median_seconds"]) == {"two_phase", "our magic"}
    assert document["details"]["requests, two_phase, median"] >= 60
    assert "mvn dependency:copy-dependencies" in capsys.readouterr().out
