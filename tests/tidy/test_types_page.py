"""Check that docs/reference/types.md matches the tables of tests/matrix."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark.sql")

from tests.matrix.document import PAGE, document

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's imports warn about pandas


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == document(), "run: python -m tests.matrix.document"
