"""Hadoop's client of WebHDFS, as PySpark brings it, against the server; and what HDFS answers to the same calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.webhdfs_calls import WebHdfsCalls
from tests.integration.webhdfs_clients import HadoopClients, hadoop_clients, raises
from tests.unit.namespace.hdfs_cases import FILES, Case, read_cases

pytestmark = pytest.mark.spark

CASES = {
    file.stem: [case for case in read_cases(file) if all(map(WebHdfsCalls.can_run, case.steps))]
    for file in FILES
    if file.stem != "append"  # streams: below
}

_REFUSED_BY_CLIENT = ("setrep /f 0", "setrep /f -1", "write /g x repl=0", "truncate /f -1")


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopClients]:
    with hadoop_clients(tmp_path_factory.mktemp("served")) as clients:
        yield clients


def _run(case: Case, hadoop: HadoopClients) -> list[str]:
    hadoop.calls.clear()
    wrong = []
    for step in case.steps:
        expected = "IllegalArgumentException" if step.call in _REFUSED_BY_CLIENT else step.ours
        answer = hadoop.calls.answer(step)
        if answer != expected:
            wrong.append(f"{case.title}: {step.call} -> {answer}, and HDFS {expected}")
    return wrong


@pytest.mark.parametrize("kind", CASES)
def test_recorded_cases_of_hdfs(kind: str, hadoop: HadoopClients) -> None:
    assert [one for case in CASES[kind] for one in _run(case, hadoop)] == []


def test_most_recorded_cases_are_run() -> None:
    assert sum(map(len, CASES.values())) > 100


# --- files ------------------------------------------------------------------------------------------------------------
DATA = bytes(range(256)) * 4096 + b"the end"


@pytest.fixture(scope="module")
def data_file(hadoop: HadoopClients) -> str:
    hadoop.write("/files/data", DATA, block_bytes=512 * 1024)
    return "/files/data"


def test_a_file_is_read_from_any_position(hadoop: HadoopClients, data_file: str) -> None:
    stream = hadoop.fs.open(hadoop.path(data_file))
    stream.seek(1000)
    assert [stream.read() for _ in range(3)] == list(DATA[1000:1003])
    stream.seek(10)
    assert stream.read() == DATA[10] and stream.getPos() == 11
    assert stream.skip(500_000) == 500_000 and stream.read() == DATA[500_011]
    assert stream.read(len(DATA) - 7, hadoop.java_array(20), 0, 20) == 7
    stream.readFully(777, hadoop.java_array(20))
    assert stream.read() == DATA[500_012], "a positioned read moves nothing"
    stream.seek(len(DATA) - 10)
    assert bytes(stream.readNBytes(20)) == DATA[-10:]
    stream.close()
    assert hadoop.read(data_file) == DATA


def test_the_end_of_a_file(hadoop: HadoopClients, data_file: str) -> None:
    """HDFS refuses an offset beyond the end with a plain IOException, which a stream cannot tell from a failure."""
    buffer = hadoop.java_array(20)
    stream = hadoop.fs.open(hadoop.path(data_file))
    assert stream.read(len(DATA), buffer, 0, 20) == -1
    assert stream.read(len(DATA) + 5, buffer, 0, 20) == -1
    with raises("EOFException"):
        stream.readFully(len(DATA) - 3, buffer)
    with raises("EOFException"):
        stream.readFully(len(DATA) + 3, buffer)
    stream.seek(len(DATA))
    assert stream.read() == -1
    stream.close()
    stream = hadoop.fs.open(hadoop.path(data_file))
    stream.seek(len(DATA) + 1)
    with raises("EOFException", f"Offset={len(DATA) + 1} out of the range [0, {len(DATA)}); OPEN, path=/files/data"):
        stream.read()
    stream.close()


def test_an_append_is_visible_when_it_is_closed(hadoop: HadoopClients) -> None:
    hadoop.write("/files/log", b"one")
    for piece in (b" two", b" three", DATA):
        before = hadoop.read("/files/log")
        stream = hadoop.fs.append(hadoop.path("/files/log"))
        stream.write(piece)
        stream.flush()
        assert hadoop.read("/files/log") == before
        stream.close()
        assert hadoop.read("/files/log") == before + piece
    with raises("FileNotFoundException"):
        hadoop.fs.append(hadoop.path("/files/none"))
    stream = hadoop.fs.append(hadoop.path("/files"))
    stream.write(b"x")
    with raises("FileAlreadyExistsException"):
        stream.close()


def test_a_new_file_is_visible_when_it_is_closed(hadoop: HadoopClients) -> None:
    """HDFS shows an empty file before."""
    stream = hadoop.fs.create(hadoop.path("/files/new"), False)
    stream.write(b"all")
    stream.flush()
    assert not hadoop.fs.exists(hadoop.path("/files/new"))
    stream.close()
    assert hadoop.read("/files/new") == b"all"


def test_files_that_cannot_be_opened(hadoop: HadoopClients) -> None:
    hadoop.calls.clear()
    hadoop.write("/f", b"x")
    for path, java_class in (("/", "FileNotFoundException"), ("/none", "FileNotFoundException")):
        with raises(java_class):
            hadoop.fs.open(hadoop.path(path)).read()
    with raises("ParentNotDirectoryException"):
        hadoop.write("/f/g", b"")
    with raises("FileNotFoundException"):
        hadoop.fs.createNonRecursive(hadoop.path("/none/f"), False, 4096, 1, 1024 * 1024, None).close()
    with raises("AccessControlException"):
        hadoop.of("bob").create(hadoop.path("/bob")).close()


def test_blocks_are_at_the_server(hadoop: HadoopClients) -> None:
    """By the name that the client has for it: Java asks for that of an address."""
    hadoop.write("/files/blocks", DATA, block_bytes=512 * 1024)
    blocks = hadoop.fs.getFileBlockLocations(hadoop.path("/files/blocks"), 0, 2**40)
    assert [(one.getOffset(), one.getLength()) for one in blocks] == [(0, 524288), (524288, 524288), (1048576, 7)]
    (places,) = {(*one.getHosts(), *one.getNames()) for one in blocks}
    assert places[0] in ("127.0.0.1", "localhost") and places[1] == f"{places[0]}:{hadoop.served.port}"
    assert len(hadoop.fs.getFileBlockLocations(hadoop.path("/files/blocks"), 600_000, 1)) == 1


# --- names ------------------------------------------------------------------------------------------------------------
ODD_NAMES = ("é漢😀", "a b", "50%", "%2F", "a+b", "k=v&w;x", "q?x#y", "[x]{y}^z~`", "'\"", "a,b!$()*@", "\\", "​.x")


def test_names_with_odd_characters(hadoop: HadoopClients) -> None:
    for name in ODD_NAMES:
        hadoop.write(f"/odd/{name}", name.encode())
    found = [str(one.getPath().getName()) for one in hadoop.fs.listStatus(hadoop.path("/odd"))]
    assert found == sorted(ODD_NAMES, key=str.encode)
    assert [hadoop.read(f"/odd/{name}") for name in found] == [name.encode() for name in found]
    for name in ODD_NAMES:
        assert hadoop.fs.rename(hadoop.path(f"/odd/{name}"), hadoop.path(f"/odd/{name}{name}"))
        assert hadoop.fs.getFileStatus(hadoop.path(f"/odd/{name}{name}")).isFile()
        assert hadoop.fs.delete(hadoop.path(f"/odd/{name}{name}"), False)
    assert hadoop.fs.delete(hadoop.path("/odd"), False), "nothing is left"


def test_a_large_directory_is_listed_in_pages(hadoop: HadoopClients) -> None:
    with hadoop.served.open() as namespace:
        namespace.mkdirs("/many")
        names = [f"{number:04d}" for number in range(2500)]
        for start in range(0, len(names), 500):
            files = [namespace.create(f"/many/{name}") for name in names[start : start + 500]]
            for file in files:
                file.prepare()
            namespace.publish_many(files)
    pages = hadoop.fs.listStatusIterator(hadoop.path("/many"))
    found = []
    while pages.hasNext():
        found.append(str(pages.next().getPath().getName()))
    assert found == names
    assert len(hadoop.fs.listStatus(hadoop.path("/many"))) == 2500
    assert hadoop.fs.getContentSummary(hadoop.path("/many")).getFileCount() == 2500


def test_a_rename_of_the_file_context(hadoop: HadoopClients) -> None:
    context = hadoop.jvm.fs.FileContext.getFileContext(hadoop.conf)
    kinds = hadoop.jvm.fs.Options.Rename
    for name in ("a", "b"):
        hadoop.write(f"/context/{name}", name.encode())

    def rename(source: str, target: str, kind: object) -> None:
        options = hadoop.jvm.java.java.lang.reflect.Array.newInstance(kinds.NONE.getClass(), 1)
        options[0] = kind
        context.rename(hadoop.path(source), hadoop.path(target), options)

    with raises("FileAlreadyExistsException"):
        rename("/context/a", "/context/b", kinds.NONE)
    rename("/context/a", "/context/b", kinds.OVERWRITE)
    assert hadoop.read("/context/b") == b"a"
    with raises("FileNotFoundException"):
        rename("/context/a", "/context/c", kinds.NONE)
    with raises("FileNotFoundException"):
        rename("/context/b", "/none/c", kinds.NONE)


def test_a_deletion_may_go_to_the_trash(hadoop: HadoopClients) -> None:
    """The server says for how long, so clients move files there by themselves."""
    hadoop.write("/kept/f", b"kept")
    assert hadoop.fs.getServerDefaults(hadoop.path("/")).getTrashInterval() == 24 * 60
    assert str(hadoop.fs.getTrashRoot(hadoop.path("/kept/f")).toUri().getPath()) == "/user/super/.Trash"
    assert hadoop.jvm.fs.Trash.moveToAppropriateTrash(hadoop.fs, hadoop.path("/kept/f"), hadoop.conf)
    assert hadoop.read("/user/super/.Trash/Current/kept/f") == b"kept"
    assert [str(one.getPath().toUri().getPath()) for one in hadoop.fs.getTrashRoots(False)] == ["/user/super/.Trash"]


# --- the rest ---------------------------------------------------------------------------------------------------------
def test_what_the_file_system_says_of_itself(hadoop: HadoopClients) -> None:
    hadoop.calls.clear()
    hadoop.write("/f", DATA)
    defaults = hadoop.fs.getServerDefaults(hadoop.path("/"))
    numbers = (defaults.getBlockSize(), defaults.getBytesPerChecksum(), defaults.getReplication())
    assert numbers == (128 * 1024 * 1024, 512, 1)
    assert str(defaults.getChecksumType()) == "CRC32C" and not defaults.getEncryptDataTransfer()
    status = hadoop.fs.getStatus(hadoop.path("/"))
    assert (status.getUsed(), status.getCapacity()) == (len(DATA), 2**63 - 1)
    assert status.getRemaining() == status.getCapacity() - status.getUsed()
    assert str(hadoop.fs.getHomeDirectory().toUri().getPath()) == "/user/super"


def test_quotas_and_their_usage(hadoop: HadoopClients) -> None:
    hadoop.write("/quota/f", b"12345")
    path = hadoop.path("/quota")
    usage = hadoop.fs.getQuotaUsage(path)
    assert (usage.getFileAndDirectoryCount(), usage.getQuota(), usage.getSpaceQuota()) == (2, -1, -1)
    hadoop.fs.setQuota(path, 3, 10)
    usage = hadoop.fs.getQuotaUsage(path)
    assert (usage.getFileAndDirectoryCount(), usage.getQuota(), usage.getSpaceConsumed()) == (2, 3, 5)
    with raises("DSQuotaExceededException"):
        hadoop.write("/quota/g", b"123456")
    hadoop.write("/quota/g", b"1")
    with raises("NSQuotaExceededException"):
        hadoop.write("/quota/h", b"")
    with raises("AccessControlException"):
        hadoop.of("alice").setQuota(path, 9, 9)
    hadoop.fs.setQuota(path, -1, -1)
    assert hadoop.fs.getQuotaUsage(path).getQuota() == -1


def test_extended_attributes_by_name(hadoop: HadoopClients) -> None:
    hadoop.write("/attributes", b"")
    path = hadoop.path("/attributes")
    for name, value in (("user.a", b"1"), ("user.é", bytes(range(256))), ("trusted.b", b"")):
        hadoop.fs.setXAttr(path, name, value)
    assert bytes(hadoop.fs.getXAttr(path, "user.é")) == bytes(range(256))
    assert sorted(hadoop.fs.listXAttrs(path)) == ["trusted.b", "user.a", "user.é"]
    with raises("XAttrNotFoundException"):
        hadoop.fs.getXAttr(path, "user.none")


def test_features_that_a_namespace_does_not_have(hadoop: HadoopClients) -> None:
    """Each is refused as by an HDFS in which it is off; what would remove something that is not there, succeeds."""
    hadoop.write("/plain/f", b"x")
    fs, path = hadoop.fs, hadoop.path("/plain")
    entries = hadoop.jvm.fs.permission.AclEntry.parseAclSpec("user:bob:rwx", True)
    refused = {
        "AclException": [lambda: fs.setAcl(path, entries), lambda: fs.modifyAclEntries(path, entries)],
        "SnapshotException": [
            lambda: fs.createSnapshot(path, "s"),
            lambda: fs.renameSnapshot(path, "s", "t"),
            lambda: fs.deleteSnapshot(path, "s"),
            lambda: fs.getSnapshotDiffReport(path, "s", "t"),
            lambda: fs.getSnapshotListing(path),
        ],
        "UnsupportedOperationException": [
            lambda: fs.allowSnapshot(path),
            lambda: fs.createSymlink(path, hadoop.path("/link"), False),
            lambda: fs.setQuotaByStorageType(path, hadoop.jvm.fs.StorageType.SSD, 10**9),
        ],
        "HadoopIllegalArgumentException": [lambda: fs.setErasureCodingPolicy(path, "RS-6-3-1024k")],
        "NoECPolicySetException": [lambda: fs.unsetErasureCodingPolicy(path)],
        "UnsupportedActionException": [lambda: fs.satisfyStoragePolicy(path)],
        "IOException": [lambda: fs.setStoragePolicy(path, "COLD"), lambda: fs.getLinkTarget(path)],
    }
    for java_class, calls in refused.items():
        for call in calls:
            with raises(java_class):
                call()
    for call in (fs.removeAcl, fs.removeDefaultAcl, fs.disallowSnapshot, fs.unsetStoragePolicy):
        call(path)
    acl = fs.getAclStatus(path)
    assert (list(acl.getEntries()), str(acl.getOwner()), str(acl.getPermission())) == ([], "super", "rwxr-xr-x")
    assert str(fs.getStoragePolicy(path).getName()) == "HOT"
    assert [str(one.getName()) for one in fs.getAllStoragePolicies()] == ["HOT"]
    assert fs.getSnapshottableDirectoryList() is None and list(fs.getAllErasureCodingPolicies()) == []
