"""Build the site as ``make docs`` does: no warnings, no network, and every page and public function is included."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.acceptance.guides import ROOT
from tests.patience import PATIENCE_S

pytest.importorskip("sphinx")
pytest.importorskip("pyspark.sql")

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

_LOADED = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=["'](?:https?:)?//([^"'/]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(out / "doctrees")]
    build = subprocess.run(
        [*command, str(ROOT / "docs"), str(out / "html")],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(ROOT / one) for one in ("src", "checker/src")),
            "PYTHONWARNINGS": "ignore",
        },
        timeout=PATIENCE_S,
        check=False,
    )
    assert build.returncode == 0, build.stderr
    return out / "html"


def test_every_page_is_there(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_it_loads_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert _LOADED.findall(path.read_text(encoding="utf-8")) == [], path.name
    for path in site.rglob("*.css"):
        assert re.findall(r"url\(['\"]?(?:https?:)?//|@import ['\"]http", path.read_text(encoding="utf-8")) == [], (
            path.name
        )


def test_the_reference_has_every_public_function(site: Path) -> None:
    page = (site / "reference/api/holdfast.html").read_text(encoding="utf-8")
    for name in sorted(set(holdfast.__all__) - {"HoldfastError", "__version__"}):
        assert f'id="holdfast.{name}"' in page
    assert 'id="holdfast.errors.HoldfastError"' in (site / "reference/api/errors.html").read_text(encoding="utf-8")
