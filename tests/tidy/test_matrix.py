"""Check that the matrix of tests/matrix covers every format."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark.sql")

from holdfast.formats import FORMATS
from tests.matrix.cells import DIALECTS

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's imports warn about pandas


def test_every_format_but_text_has_a_dialect() -> None:
    assert {dialect.format for dialect in DIALECTS.values()} == {*FORMATS} - {"text"}, "add it to DIALECTS"
