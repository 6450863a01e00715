"""Kill the server that a client uses, at any moment: Hadoop's own client goes on at the other one.

What was acknowledged is there, and nothing is done twice (N6), although the client repeats what it had sent.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from holdfast.namespace import Namespace
from holdfast.namespace.keys import answers_key
from holdfast.namespace.receipts import AnswerBook, Receipt
from tests.integration.hadoop_jvm import Jvm
from tests.namespace_world import all_records
from tests.patience import wait_until
from tests.webhdfs_server import ServedNamespace, ServerProcess

pytestmark = pytest.mark.spark

_PROVIDER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


class Pair:
    """A namespace with two servers, of which the first may die, and Hadoop's client for both."""

    def __init__(self, served: ServedNamespace, jvm: Jvm, survivor: ServerProcess) -> None:
        self.served = served
        self.jvm = jvm
        self._port = free_port()
        self._conf = jvm.hadoop.conf.Configuration()
        for name, value in {
            "dfs.nameservices": "ns",
            "dfs.ha.namenodes.ns": "a,b",
            "dfs.namenode.http-address.ns.a": f"127.0.0.1:{self._port}",
            "dfs.namenode.http-address.ns.b": f"127.0.0.1:{survivor.port}",
            "dfs.client.failover.proxy.provider.ns": _PROVIDER,
            "dfs.client.failover.sleep.base.millis": "50",
        }.items():
            self._conf.set(name, value)

    def dying_server(self, operation: str, moment: str) -> ServerProcess:
        """Start the first server, which dies at an operation."""
        settings = {
            "url": "holdfast://served",
            "database": self.served.database,
            "port": self._port,
            "operation": operation,
            "moment": moment,
        }
        log = self.served.directory / "dying.log"
        return ServerProcess(["tests.integration.dying_server", json.dumps(settings)], log)

    def connect(self) -> Any:
        """Return a client that asks the first server first."""
        return self.jvm.fs.FileSystem.newInstance(self.jvm.java.java.net.URI("webhdfs://ns"), self._conf, "root")

    def path(self, text: str) -> Any:
        """Return a path of Java."""
        return self.jvm.fs.Path(text)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with ServedNamespace(tmp_path_factory.mktemp("pair")) as served, served.serve() as survivor, Jvm() as jvm:
        yield Pair(served, jvm, survivor)


@dataclass(frozen=True)
class Change:
    """A change through Hadoop's client.

    Attributes:
        operation: its name in WebHDFS.
        act: makes it, given the client, a function that makes paths, and the pair; returns the client's answer.
        answer: what the client must return.
    """

    operation: str
    act: Callable[[Any, Callable[[str], Any], Pair], object]
    answer: object = None


def _flags(pair: Pair) -> Any:
    flag = pair.jvm.fs.XAttrSetFlag
    return pair.jvm.java.java.util.EnumSet.of(flag.CREATE)


_CHANGES = {
    "rename": Change("RENAME", lambda fs, at, pair: fs.rename(at("/d/f"), at("/d/g")), True),
    "mkdirs": Change("MKDIRS", lambda fs, at, pair: fs.mkdirs(at("/d/new/deep")), True),
    "delete": Change("DELETE", lambda fs, at, pair: fs.delete(at("/d/f"), False), True),
    "delete tree": Change("DELETE", lambda fs, at, pair: fs.delete(at("/d/e"), True), True),
    "truncate": Change("TRUNCATE", lambda fs, at, pair: fs.truncate(at("/d/f"), 3), True),
    "set replication": Change("SETREPLICATION", lambda fs, at, pair: fs.setReplication(at("/d/f"), 3), True),
    "set owner": Change("SETOWNER", lambda fs, at, pair: fs.setOwner(at("/d/f"), "ann", "staff")),
    "set times": Change("SETTIMES", lambda fs, at, pair: fs.setTimes(at("/d/f"), 1000, 2000)),
    "concat": Change("CONCAT", lambda fs, at, pair: fs.concat(at("/d/f"), _paths(pair, "/d/h"))),
    "set xattr": Change(
        "SETXATTR", lambda fs, at, pair: fs.setXAttr(at("/d/f"), "user.new", bytearray(b"1"), _flags(pair))
    ),
    "remove xattr": Change("REMOVEXATTR", lambda fs, at, pair: fs.removeXAttr(at("/d/f"), "user.a")),
}


def _paths(pair: Pair, *texts: str) -> Any:
    reflect = pair.jvm.java.java.lang.reflect.Array
    found = reflect.newInstance(pair.path("/").getClass(), len(texts))
    for number, text in enumerate(texts):
        reflect.set(found, number, pair.path(text))
    return found


def _prepare(namespace: Namespace) -> None:
    namespace.delete("/d", recursive=True)
    namespace.mkdirs("/d/e/deep")
    namespace.write_file("/d/f", b"content")
    namespace.write_file("/d/h", b" and more")
    namespace.set_xattr("/d/f", "user.a", b"1")


def _tree(namespace: Namespace) -> list[object]:
    return [
        (one.path, one.size, one.owner, one.replication, None if one.is_directory else namespace.xattrs(one.path))
        for one in namespace.walk("/d")
    ]


_QUICK = ("rename", "delete", "mkdirs")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "name", [name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow) for name in _CHANGES]
)
def test_a_change_has_one_effect_and_one_answer_although_its_server_dies(pair: Pair, name: str, moment: str) -> None:
    change = _CHANGES[name]
    with pair.served.open() as namespace:
        _prepare(namespace)
        with pair.dying_server(change.operation, moment) as dying, closing(pair.connect()) as client:
            assert change.act(client, pair.path, pair) == change.answer
            assert dying.process.wait(60) == 9, "the first server was asked first"
            once = _tree(namespace)
            # The client goes on: what it asks for again is new, and not the repeat of what was answered.
            _prepare(namespace)
            assert change.act(client, pair.path, pair) == change.answer
            assert _tree(namespace) == once


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("operation", ["CREATE", "APPEND"])
def test_a_file_is_whole_or_not_there_if_its_server_dies(pair: Pair, operation: str, moment: str) -> None:
    """The client cannot send the bytes again. Its caller gets an error, and writes the file again."""
    with pair.served.open() as namespace:
        _prepare(namespace)
        with pair.dying_server(operation, moment) as dying, closing(pair.connect()) as client:
            at = pair.path("/d/f")
            stream = client.append(at) if operation == "APPEND" else client.create(at, True)
            stream.write(bytearray(b" new"))
            with pytest.raises(Py4JJavaError):
                stream.close()
            assert dying.process.wait(60) == 9
            expected = {"CREATE": b" new", "APPEND": b"content new"}[operation] if moment == "after" else b"content"
            assert namespace.open("/d/f").read() == expected
            if operation == "CREATE":
                again = client.create(at, True)
                again.write(bytearray(b"again"))
                again.close()
                assert namespace.open("/d/f").read() == b"again"


def _was_delivered(namespace: Namespace) -> bool | None:
    """Return whether the server that has made the newest change says that its answer was delivered."""
    receipts = [Receipt.decode(one.value) for key, one in all_records(namespace.database).items() if key[:1] == b"q"]
    newest = max((one for one in receipts if one is not None), key=lambda one: (one.at_ms, one.number))
    book = namespace.database.get_many([answers_key(newest.server)]).get(answers_key(newest.server))
    return None if book is None else AnswerBook.decode(book.value).was_delivered(newest.number)


def test_what_follows_an_answer_that_was_delivered_is_new_although_the_server_died_later(pair: Pair) -> None:
    """The first server has published that the answer was delivered. (If it dies before, within a tenth of a second, and
    another client has made the path anew, the second server takes the next request for the repeat.)
    """
    with pair.served.open() as namespace:
        _prepare(namespace)
        with pair.dying_server("SETTIMES", "before") as dying, closing(pair.connect()) as client:
            assert client.delete(pair.path("/d/f"), False)
            namespace.write_file("/d/f", b"another")
            wait_until(lambda: _was_delivered(namespace), "the server does not say that it was delivered")
            client.setTimes(pair.path("/d/h"), 1000, 2000)  # here it dies
            assert dying.process.wait(60) == 9
            assert client.delete(pair.path("/d/f"), False)
            assert not namespace.exists("/d/f")
