"""Run moto's S3 server in this process. It accepts any object key, stores data in memory and checks no credentials.

Worked composition::

    with MotoServer() as server:
        server.create_bucket("bucket")
        store = S3Store("bucket", server.options)
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from holdfast.stores.s3 import S3Options


class MotoServer:
    """An in-memory S3 server on a free loopback port, in a thread of this process. For tests only.

    Guarantee: of several conditional writes at a time one succeeds. moto alone looks for the object and then writes.
    """

    def __init__(self) -> None:
        self._server = make_server(
            "127.0.0.1",
            0,
            _OneAtATime(DomainDispatcherApplication(create_backend_app)),
            threaded=True,
            request_handler=MotoRequestHandler,
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint_url(self) -> str:
        """Return the endpoint of the server."""
        return f"http://127.0.0.1:{self._server.port}"

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
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _OneAtATime:
    """An application that works at one request at a time, once its body is there: a slow client holds nobody up."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._turn = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length:
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        with self._turn:
            answer: Iterable[bytes] = self._application(environ, start_response)
            return answer
