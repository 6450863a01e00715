"""One Spark application and one S3 server for all modules here; each keeps to a session and bucket of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from holdfast.testing.weed import SeaweedServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """The module's own session: nobody else's settings, registered formats and temporary views are in it."""
    from tests.integration.spark_session import new_session  # late: modules without Spark run without PySpark

    return new_session()


@pytest.fixture(scope="session")
def server() -> Iterator[SeaweedServer]:
    """A server for tests that leave it running and keep to a bucket of their module."""
    with SeaweedServer() as running:
        yield running
