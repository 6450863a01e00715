"""Find, start on free ports and stop the S3 servers that Holdfast does not ship.

Programs are looked for in the directory that HOLDFAST_SERVERS names, on the PATH, and where `go install` and Maven put
them; `make servers` installs what it can. A test whose server is missing is skipped and says how to get it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from holdfast.errors import UnavailableError
from holdfast.s3_server import end_group, find_free_ports, start_server
from holdfast.stores.s3 import S3Options
from tests.patience import PATIENCE_S
from tests.servers.moto import MotoServer
from tests.servers.tls import Authority, TlsFront

__all__ = ["BUCKET", "RECIPES", "Recipe", "running", "started"]

BUCKET = "holdfast-conformance"
_KEYS = ("holdfast", "holdfast-secret")


@dataclass
class Home:
    """A server's data and its running processes.

    Attributes:
        directory: for everything; goes with the server.
        programs: paths, in the order of the recipe.
        front: paths of a certificate and its key, for a server that is to speak TLS.
    """

    directory: Path
    programs: Sequence[str]
    front: tuple[str, str] | None = None
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def spawn(self, *command: str, environment: Mapping[str, str] | None = None) -> None:
        log = self.directory / f"{Path(command[0]).name}.log"
        self.processes.append(start_server(command, log, self.directory, environment))

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.directory, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        if done.returncode:
            raise UnavailableError("a step of the set-up failed: see what it said", log=done.stderr[-2000:])
        return done.stdout

    def pause(self) -> None:
        """Wait a moment, or less if a server exits."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.processes[-1].wait(0.2)

    def dead(self) -> bool:
        return any(process.poll() is not None for process in self.processes)

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-1500:] for path in sorted(self.directory.glob("*.log")))


@dataclass(frozen=True)
class Recipe:
    """A server.

    Attributes:
        title: its name and the version that the deviations were found with.
        programs: what has to be there: names of programs, or patterns of files.
        install: how to get them.
        start: starts it and returns the port of S3.
        tls: whether it can speak TLS by itself.
        keys: access key and secret key that it takes.
    """

    title: str
    programs: tuple[str, ...]
    install: str
    start: Callable[[Home], int]
    tls: bool = False
    keys: tuple[str, str] = _KEYS

    def found(self) -> list[str] | None:
        """Return the paths of the programs; None if one is missing."""
        paths = [_find(name) for name in self.programs]
        return None if None in paths else [path for path in paths if path is not None]


def _find(name: str) -> str | None:
    places = [os.environ.get("HOLDFAST_SERVERS", ""), str(Path.home() / "go/bin")]
    if "*" not in name:
        return shutil.which(name, path=os.pathsep.join([*filter(None, places), os.environ["PATH"]]))
    places.append(str(Path.home() / ".m2/repository/**"))
    found = [path for place in filter(None, places) for path in glob.glob(f"{place}/{name}", recursive=True)]
    return sorted(found)[-1] if found else None


@contextlib.contextmanager
def running(recipe: Recipe, authority: Authority | None = None) -> Iterator[S3Options]:
    """A server with the bucket `BUCKET`, and how to reach it; nothing of it is left afterwards.

    Args:
        authority: with it the server speaks TLS by a certificate of this authority, which the options know.
    """
    programs = recipe.found()
    assert programs is not None, "the caller looks first"
    front = None if authority is None else authority.issue("127.0.0.1")
    home = Home(Path(tempfile.mkdtemp(prefix="holdfast-server-")), programs, front)
    try:
        port = recipe.start(home)
        scheme = "http" if front is None else "https"
        access_key, secret_key = recipe.keys
        options = S3Options(
            endpoint_url=f"{scheme}://127.0.0.1:{port}",
            region="us-east-1",
            access_key=access_key,
            secret_key=secret_key,
            addressing_style="path",
            ca_bundle=None if authority is None else authority.bundle,
        )
        _wait_until_writable(home, options)
        yield options
    finally:
        for process in reversed(home.processes):
            end_group(process)
        shutil.rmtree(home.directory, ignore_errors=True)


def _wait_until_writable(home: Home, options: S3Options) -> None:
    client = boto3.session.Session().client(
        "s3",
        endpoint_url=options.endpoint_url,
        region_name=options.region,
        aws_access_key_id=options.access_key,
        aws_secret_access_key=options.secret_key,
        verify=options.ca_bundle,
        config=Config(
            retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30, s3={"addressing_style": "path"}
        ),
    )
    deadline_s = time.monotonic() + PATIENCE_S
    try:
        while True:
            try:
                with contextlib.suppress(client.exceptions.BucketAlreadyOwnedByYou):
                    client.create_bucket(Bucket=BUCKET)
                client.put_object(Bucket=BUCKET, Key="probe", Body=b"x" * 4096)
                client.delete_object(Bucket=BUCKET, Key="probe")
                return
            except (BotoCoreError, ClientError) as error:
                if home.dead() or time.monotonic() > deadline_s:
                    raise UnavailableError("the server does not take writes: see its log", log=home.logs()) from error
            home.pause()
    finally:
        client.close()


@contextlib.contextmanager
def started(name: str, directory: Path) -> Iterator[S3Options]:
    """A server of `RECIPES`, or ``tls``: moto behind TLS of an authority that only the options know.

    Args:
        directory: for certificates.

    A test whose server is not installed is skipped, with how to get it.
    """
    if name == "tls":
        authority = Authority(directory)
        with MotoServer() as moto, TlsFront(moto.endpoint_url, *authority.issue("127.0.0.1")) as front:
            moto.create_bucket(BUCKET)
            yield dataclasses.replace(moto.options, endpoint_url=front.url, ca_bundle=authority.bundle)
        return
    recipe = RECIPES[name]
    if recipe.found() is None:
        pytest.skip(f"{recipe.title} is not installed: {recipe.install}, or make servers")
    with running(recipe) as options:
        yield options


# --- recipes ----------------------------------------------------------------------------------------------------------
def _start_versitygw(home: Home) -> int:
    [port], data = find_free_ports(1), home.directory / "data"
    data.mkdir()
    tls = ("--cert", home.front[0], "--key", home.front[1]) if home.front else ()
    access_key, secret_key = _KEYS
    home.spawn(
        *(home.programs[0], "--port", f"127.0.0.1:{port}", *tls, "posix", str(data)),
        environment={"ROOT_ACCESS_KEY": access_key, "ROOT_SECRET_KEY": secret_key},
    )
    return port


def _start_minio(home: Home) -> int:
    port, console = find_free_ports(2)
    data = home.directory / "data"
    data.mkdir()
    tls: tuple[str, ...] = ()
    if home.front:
        certificates = home.directory / "certs"
        certificates.mkdir()
        shutil.copy(home.front[0], certificates / "public.crt")
        shutil.copy(home.front[1], certificates / "private.key")
        tls = ("--certs-dir", str(certificates))
    access_key, secret_key = _KEYS
    addresses = ("--address", f"127.0.0.1:{port}", "--console-address", f"127.0.0.1:{console}")
    home.spawn(
        *(home.programs[0], "server", "--quiet", *addresses, *tls, str(data)),
        environment={"MINIO_ROOT_USER": access_key, "MINIO_ROOT_PASSWORD": secret_key},
    )
    return port


def _start_s3mock(home: Home) -> int:
    tls, port = find_free_ports(2)
    java, jar = home.programs
    store = f"--com.adobe.testing.s3mock.store.root={home.directory / 'data'}"
    (home.directory / "data").mkdir()
    where = (f"--server.port={tls}", f"--http.port={port}", "--server.address=127.0.0.1", store)
    home.spawn(java, "-Xmx512m", "-jar", jar, *where)
    return port


def _start_s3rver(home: Home) -> int:
    [port] = find_free_ports(1)
    data = home.directory / "data"
    data.mkdir()
    identity = ("--service-endpoint", "127.0.0.1")
    home.spawn(home.programs[0], "-d", str(data), "-a", "127.0.0.1", "-p", str(port), *identity, "--silent")
    return port


_CEPH = """\
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{monitor}]
mon initial members = a
public addr = 127.0.0.1
ms bind msgr1 = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
osd objectstore = memstore
memstore device bytes = 4294967296
run dir = {home}
crash dir = {home}
admin socket = {home}/$name.asok
log file = {home}/$name.log
pid file =
mon data = {home}/mon
mgr data = {home}/mgr
osd data = {home}/osd
rgw data = {home}/rgw
keyring = {home}/keyring
"""


def _start_radosgw(home: Home) -> int:
    """One monitor, one manager, one OSD in memory, one gateway; keys are needed, Ceph's own and the user's."""
    monitor, port = find_free_ports(2)
    fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
    mon_program, osd_program, mgr_program, gateway, admin, ceph, authtool, monmaptool = home.programs
    for name in ("mon", "mgr", "osd", "rgw"):
        (home.directory / name).mkdir()
    (home.directory / "ceph.conf").write_text(_CEPH.format(fsid=fsid, monitor=monitor, home=home.directory))
    all_of = ("--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr", "allow *")
    home.run(authtool, "--create-keyring", "keyring", "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    for name in ("client.admin", "mgr.x", "osd.0", "client.rgw"):
        home.run(authtool, "keyring", "--gen-key", "-n", name, *all_of)
    address = f"[v2:127.0.0.1:{monitor}]"
    home.run(monmaptool, "--create", "--fsid", fsid, "--addv", "a", address, "monmap")
    conf = ("-c", str(home.directory / "ceph.conf"))
    home.run(mon_program, *conf, "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "keyring")
    home.spawn(mon_program, *conf, "-i", "a", "-f")
    home.spawn(mgr_program, *conf, "-i", "x", "-f")
    home.run(ceph, *conf, "-n", "client.admin", "osd", "new", osd, "0")
    home.run(osd_program, *conf, "-i", "0", "--mkfs", "--osd-uuid", osd)
    home.spawn(osd_program, *conf, "-i", "0", "-f")
    home.spawn(gateway, *conf, "-n", "client.rgw", "-f", f"--rgw-frontends=beast endpoint=127.0.0.1:{port}")
    access_key, secret_key = _KEYS
    keys = ("--access-key", access_key, "--secret-key", secret_key)
    home.run(admin, *conf, "-n", "client.admin", "user", "create", "--uid=holdfast", "--display-name=holdfast", *keys)
    return port


RECIPES = {
    "radosgw": Recipe(
        "Ceph radosgw 16.2",
        ("ceph-mon", "ceph-osd", "ceph-mgr", "radosgw", "radosgw-admin", "ceph", "ceph-authtool", "monmaptool"),
        "Debian: apt-get install ceph-mon ceph-osd ceph-mgr radosgw ceph-common",
        _start_radosgw,
    ),
    "versitygw": Recipe(
        "versitygw 1.8 (posix)",
        ("versitygw",),
        "go install github.com/versity/versitygw/cmd/versitygw@latest",
        _start_versitygw,
        tls=True,
    ),
    "minio": Recipe(
        "MinIO (2026-02-12, its last)",
        ("minio",),
        "go install github.com/minio/minio@latest",
        _start_minio,
        tls=True,
    ),
    "s3mock": Recipe(
        "Adobe S3Mock 5.2",
        ("java", "s3mock-*-exec.jar"),
        "mvn dependency:get -Dartifact=com.adobe.testing:s3mock:5.2.0:jar:exec",
        _start_s3mock,
    ),
    "s3rver": Recipe(
        "s3rver 3.7", ("s3rver",), "npm install --global s3rver@3.7.1", _start_s3rver, keys=("S3RVER", "S3RVER")
    ),
}
"""By name."""
