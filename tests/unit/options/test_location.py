"""Destinations and credentials: what Spark cannot use, and what no error shows."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from holdfast.errors import InvalidRequestError
from holdfast.options.read import parse_read_options
from holdfast.options.write import parse_write_options
from holdfast.stores.s3 import S3Options

SECRETS = {"accessKey": "canary-a", "secretKey": "canary-b", "sessionToken": "canary-c"}


@pytest.mark.parametrize("url", ["", "  ", "memory://x", "MEMORY://x"])
def test_destinations_that_spark_cannot_use(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_write_options({"path": url}, overwrite=False)
    with pytest.raises(InvalidRequestError, match="no destination was given"):
        parse_read_options({})
    with pytest.raises(InvalidRequestError, match="a read takes one path"):
        parse_read_options({"path": "a", "paths": '["a", "b"]'})


def test_secrets_are_not_shown() -> None:
    """facts: faults 86."""
    options = parse_write_options({"path": "s3://bucket/x", **SECRETS}, overwrite=False)
    (s3,) = options.store.store_options
    assert isinstance(s3, S3Options) and s3.secret_key == "canary-b"
    assert "canary" not in repr(options)
    with pytest.raises(InvalidRequestError) as caught:
        parse_write_options({"path": "s3://bucket/x", "secretKey": "canary", "threads": "x"}, overwrite=False)
    assert "canary" not in str(caught.value) + repr(caught.value)
