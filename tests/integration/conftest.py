"""Share one Spark application and one S3 server among all modules here; each has its own session and bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from holdfast.s3_server import SeaweedServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """Return a session of the module: it shares no settings, registered formats or temporary views with others."""
    from tests.integration.spark_session import new_session  # imported late: modules without Spark run without PySpark

    return new_session()


@pytest.fixture(scope="session")
def server() -> Iterator[SeaweedServer]:
    """Start a server for tests that leave it running and write only to their module's bucket."""
    with SeaweedServer() as running:
        yield running
