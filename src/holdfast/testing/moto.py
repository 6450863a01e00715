"""Run moto's S3 server in this process. It accepts any object key, stores data in memory and checks no credentials.

Worked composition::

    with MotoServer() as server:
        server.create_bucket("b")
        store = S3Store("b", server.options)
"""

from __future__ import annotations

from types import TracebackType

import boto3
from moto.server import ThreadedMotoServer

from holdfast.stores.s3.options import S3Options

__all__ = ["MotoServer"]


class MotoServer:
    """An in-memory S3 server on a free loopback port, in a thread of this process. For tests only."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._port = 0

    @property
    def endpoint_url(self) -> str:
        """Return the endpoint of the server."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def options(self) -> S3Options:
        """Return the options to open a store on this server; any access keys work."""
        return S3Options(
            endpoint_url=self.endpoint_url, region="us-east-1", access_key="holdfast", secret_key="holdfast-secret"
        )

    def create_bucket(self, name: str) -> None:
        """Create a bucket."""
        options = self.options
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=options.endpoint_url,
            region_name=options.region,
            aws_access_key_id=options.access_key,
            aws_secret_access_key=options.secret_key,
        )
        try:
            client.create_bucket(Bucket=name)
        finally:
            client.close()

    def __enter__(self) -> MotoServer:
        self._server.start()
        self._port = self._server.get_host_and_port()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.stop()
