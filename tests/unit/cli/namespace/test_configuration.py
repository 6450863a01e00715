"""`namespace init`, `list`, `status` and `gc`, on SQLite and local data."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli.namespace.upkeep import fsck, sweep_namespace
from holdfast.cli.output import Output
from holdfast.errors import UnavailableError
from holdfast.namespace import Configuration, Namespace, init_namespace, open_namespace
from holdfast.namespace.keys import garbage_key, times_key
from holdfast.namespace.maintenance import LeaderElection, MaintenanceLock
from holdfast.runtime import Environment, SystemClock
from holdfast.transactions.base import Commit
from tests.patience import PATIENCE_S
from tests.unit.cli.destinations import run


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory, and a catalog in it."""
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "catalog.json"))
    monkeypatch.setenv("LOGNAME", "root")
    return tmp_path


def _init(place: Path, *more: str) -> str:
    database = f"sqlite://{place}/n.db?synchronous=normal"
    result = run("namespace", "init", "ns", "--database", database, "--data", str(place / "data"), *more)
    assert result.exit_code == 0, result.output
    return result.stdout


# --- init -------------------------------------------------------------------------------------------------------------
def test_a_namespace_is_created_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    arguments = ["namespace", "init", "ns", "--database", f"sqlite://{place}/n.db", "--data", "./data"]
    assert run(*arguments).stdout == "created namespace ns: list it with holdfast fs ls holdfast://ns/\n"
    again = json.loads(run(*arguments, "--json").stdout)
    assert again == {
        "name": "ns",
        "created": False,
        "database": f"sqlite://{place}/n.db",
        "data": str(place / "data"),
    }
    assert run("fs", "ls", "holdfast://ns/").exit_code == 0


def test_every_option_reaches_the_configuration(place: Path) -> None:
    _init(
        place,
        *("--superuser", "ann", "--supergroup", "admins", "--inline-bytes", "1k", "--block-size", "64M"),
        *("--replication", "3", "--safety-age", "2h", "--no-permissions"),
    )
    with open_namespace("holdfast://ns") as namespace:
        found = namespace.configuration
    assert (found.superuser, found.supergroup, found.permissions) == ("ann", "admins", False)
    assert (found.inline_bytes, found.block_size) == (1024, 64 * 1024 * 1024)
    assert (found.replication, found.safety_age_s) == (3, 7200)


def test_a_namespace_need_not_be_in_the_catalog(place: Path) -> None:
    created = _init(place, "--no-register")
    assert run("fs", "ls", "holdfast://ns/").exit_code == 2
    advice = created.partition("list it with holdfast ")[2].split()
    assert run(*advice).exit_code == 0


def test_the_database_may_come_from_the_environment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACE_NS", f"sqlite://{place}/n.db")
    created = run("namespace", "init", "ns", "--data", str(place / "data"), "--no-register")
    assert created.exit_code == 0
    assert created.stdout == "created namespace ns: list it with holdfast fs ls holdfast://ns/\n"
    assert run("fs", "ls", "holdfast://ns/").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ns", "--data", "d"], "give --database, or set HOLDFAST_NAMESPACE_NS to its url"),
        (["a b", "--data", "d", "--database", "sqlite:///n.db"], "letters, digits, '-' and '_' only"),
        (["ns", "--data", "d", "--database", "n.db"], "a database needs a URL such as sqlite:///directory/file.db"),
        (["ns", "--data", "d", "--database", "postgre://h/d"], "did you mean postgres"),
        (["ns", "--data", "d", "--database", "sqlite://n.db"], "has three slashes"),
        (["ns", "--data", "d", "--database", "sqlite:n.db"], "a database needs a URL such as"),
        (["ns", "--data", "d", "--database", "sqlite:///no/such/place/n.db"], "the directory of the database file"),
        (["ns", "--data", "d", "--database", "sqlite:///n.db?colour=red"], "unknown option"),
        (["ns", "--data", "foo://x", "--database", "sqlite:///PLACE/n.db"], "no store has this url scheme"),
        (["ns", "--data", "s3://k:very-secret@b", "--database", "sqlite:///n.db"], "credentials do not belong"),
        (["ns", "--data", "d", "--database", "postgresql://u:very-secret@h/d"], "a password does not belong"),
        (["ns", "--data", "d", "--database", "mysql://h/d?password=very-secret"], "a password does not belong"),
        *(
            (["ns", "--data", "d", "--database", url], "a password does not belong")
            for url in (
                "postgresql://u:very-secret/x@h/d",
                "postgresql://u:x#very-secret@h/d",
                "mysql://u:x?very-secret@h/d",
                "mysql://u:x@very-secret@h/d",
                "postgresql://u:[very-secret@h/d",
                "sqlite://u:very-secret@h/n.db",
                "mysql://h/d?ssl_key_password=very-secret",
            )
        ),
        (["ns", "--data", "d", "--database", "sqlite:///n.db", "--inline-bytes", "2M"], "at most 1048576 bytes"),
        (["ns", "--database", "sqlite:///n.db"], "Missing option '--data'"),
        (["ns", "--data", "d", "--database", "memory://x"], "memory:// exists in one process only"),
        (["ns", "--data", "memory://x", "--database", "sqlite:///n.db"], "memory:// exists in one process only"),
        (["ns", "--data", "d", "--database", "sqlite:///n.db", "--safety-age", "36501d"], "at most 36500d"),
        (["ns", "--data", "d", "--database", "sqlite:///n.db", "--block-size", "9" * 400 + ".5"], "at most 8191P"),
        *(
            (["ns", "--data", "d", "--database", "sqlite:///n.db", option, ""], f"'{option}': the value is empty")
            for option in ("--superuser", "--supergroup", "--data", "--database")
        ),
    ],
)
def test_init_refuses_before_anything_is_created(place: Path, arguments: list[str], sentence: str) -> None:
    result = run("namespace", "init", *(one.replace("/PLACE", str(place)) for one in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert "very-secret" not in result.output
    assert {path.name for path in place.iterdir()} <= {"catalog.json.lock"}, "the lock of the user's catalog stays"


def test_another_namespace_in_the_database_is_named(place: Path) -> None:
    _init(place)
    result = run("namespace", "init", "other", "--database", f"sqlite://{place}/n.db", "--data", str(place / "x"))
    assert (result.exit_code, "the database contains another namespace already" in result.stderr) == (2, True)
    assert "did you mean ns" in run("fs", "ls", "holdfast://nss/").stderr


@pytest.mark.parametrize(
    "url", ["postgresql://u:very-secret/x@h/d", "postgresql://u:x#very-secret@h/d", "sqlite://u:very-secret@h/n.db"]
)
@pytest.mark.parametrize(
    "arguments", [["namespace", "list"], ["fs", "ls", "holdfast://ns/"], ["namespace", "status", "ns"]]
)
def test_a_password_in_the_wrong_place_of_a_variable_is_not_shown(
    place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], url: str
) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACE_NS", url)
    for result in (run(*arguments), run(*arguments, "--json")):
        assert "very-secret" not in result.output
        assert result.exit_code == (0 if "list" in arguments else 2)


# --- list -------------------------------------------------------------------------------------------------------------
def test_list_shows_no_passwords(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no namespace is known: create one" in run("namespace", "list").stdout
    _init(place)
    monkeypatch.setenv("HOLDFAST_NAMESPACE_OTHER", "postgresql://user:very-secret@host/db?sslmode=require")
    (place / "catalog.json").write_text(json.dumps({"ns": f"sqlite://{place}/n.db", "odd": "x://[y"}))
    result = run("namespace", "list")
    assert [line.split(maxsplit=1)[0] for line in result.stdout.splitlines()] == [
        "name",
        "ns",
        "odd",
        "other",
        "catalog:",
    ]
    assert "postgresql://host/db " in result.stdout and "(not a url)" in result.stdout
    assert "very-secret" not in result.output
    found = json.loads(run("namespace", "list", "--json").stdout)["namespaces"]
    assert [one["from"] for one in found] == [*[str(place / "catalog.json")] * 2, "HOLDFAST_NAMESPACE_OTHER"]


def test_list_tells_two_schemas_of_one_database_apart(place: Path) -> None:
    """Defect: they were shown with the same URL. No other option is shown, since it might be a secret."""
    url = "postgresql://u:very-secret@host/db?sslpassword=very-secret&schema="
    (place / "catalog.json").write_text(
        json.dumps({"one": url + "one", "two": url + "two", "x": url + "%20very-secret"})
    )
    result = run("namespace", "list")
    assert "very-secret" not in result.output
    shown = [line.split()[1] for line in result.stdout.splitlines()[1:4]]
    assert shown == ["postgresql://host/db?schema=one", "postgresql://host/db?schema=two", "postgresql://host/db"]


def test_init_finds_the_database_in_the_catalog(place: Path) -> None:
    _init(place)
    result = run("namespace", "init", "ns", "--data", str(place / "data"))
    assert (result.exit_code, "exists already" in result.stdout) == (0, True), result.output
    other = run("namespace", "init", "ns", "--data", str(place / "other"))
    assert (other.exit_code, "with its data at another place" in other.stderr) == (2, True)


def test_gc_says_what_waits(place: Path) -> None:
    """Defect: it said what it had removed, and no byte was free."""
    _init(place, "--inline-bytes", "0")
    with open_namespace("holdfast://ns") as namespace:
        namespace.write_file("/f", b"bytes")
        namespace.delete("/f")
    assert run("namespace", "gc", "ns").stdout == "nothing to remove\nkept for the safety age, 1d: 1 blob\n"


def test_a_damaged_catalog_is_named(place: Path) -> None:
    (place / "catalog.json").write_text("[]")
    result = run("namespace", "list")
    assert (result.exit_code, "the catalog of namespaces cannot be read" in result.stderr) == (1, True)


# --- status -----------------------------------------------------------------------------------------------------------
def test_status_counts_what_waits(place: Path) -> None:
    _init(place, "--safety-age", "1h", "--inline-bytes", "0")
    with open_namespace("holdfast://ns", user="root") as namespace:
        for number in range(3):
            namespace.write_file(f"/d{number}/f", b"1")
            namespace.delete(f"/d{number}", recursive=True)
        namespace.write_file("/f", b"1")
        namespace.delete("/f")
        namespace.create_with_lease("/open")
        assert LeaderElection(namespace.database, SystemClock(), "machine:1").try_to_lead()
    found = json.loads(run("namespace", "status", "holdfast://ns/x", "--json").stdout)
    assert (found["deleted_trees"], found["garbage_blobs"], found["garbage_blobs_due"], found["leases"]) == (3, 1, 0, 1)
    assert (found["leader"]["holder"], found["schema"], found["data_reachable"]) == ("machine:1", 1, True)
    shown = run("namespace", "status", "ns").stdout
    assert "\ndeleted trees      3\n" in shown and "machine:1, until" in shown
    assert "run holdfast namespace gc ns" in shown


def test_status_shows_a_store_that_cannot_be_reached(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _init(place)

    def gone(*arguments: object, **more: object) -> None:
        raise UnavailableError("the store cannot be reached: check the network")

    monkeypatch.setattr("holdfast.stores.local.store.LocalStore.list_page", gone)
    result = run("namespace", "status", "ns")
    assert result.exit_code == 3
    assert result.stderr == "error: the store cannot be reached: check the network\n"
    assert ["data", "reachable", "no"] in [line.split() for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nsx"], 2, "no such namespace: did you mean ns"),
        (["ns", "--database", "sqlite:///PLACE/no.db"], 2, "the database file does not exist"),
        (["ns", "--database", "sqlite:///no.db"], 2, "the path of an SQLite file is absolute"),
        (["ns", "--database", "sqlite:///PLACE/catalog.json"], 2, "the file is not an SQLite database"),
        (["other", "--database", "sqlite:///PLACE/n.db"], 2, "the database contains a namespace of another name"),
        (["ns", "--database", "postgresql://u@127.0.0.1:1/d"], 3, "the database cannot be reached"),
        (["ns", "--database", "postgresql://u:very-secret@127.0.0.1:1/d"], 2, "a password does not belong"),
    ],
)
def test_a_wrong_database_is_one_sentence(place: Path, arguments: list[str], code: int, sentence: str) -> None:
    _init(place)
    for command in (["namespace", "status"], ["namespace", "gc"]):
        result = run(*command, *(one.replace("/PLACE", str(place)) for one in arguments))
        assert (result.exit_code, result.stdout) == (code, "")
        assert sentence in result.stderr
        assert "very-secret" not in result.output


# --- gc ---------------------------------------------------------------------------------------------------------------
def _fill_and_delete(namespace: Namespace) -> None:
    namespace.write_file("/d/e/f", bytes(1000))
    namespace.delete("/d", recursive=True)


def test_gc_removes_everything(place: Path) -> None:
    _init(place, "--safety-age", "0s", "--inline-bytes", "0")
    with open_namespace("holdfast://ns", user="root") as namespace:
        _fill_and_delete(namespace)
    found = json.loads(run("namespace", "gc", "ns", "--json").stdout)
    assert (found["leads"], found["trees"], found["files"], found["leases"]) == (True, 2, 1, 0)
    # What became garbage in this very millisecond waits for the next collection.
    assert run("namespace", "gc", "ns").stdout in (
        "nothing to remove\n",
        "deleted 1 blob\n",
    )
    assert run("namespace", "gc", "ns").stdout == "nothing to remove\n"
    assert [path for path in (place / "data" / "blobs").rglob("*") if path.is_file()] == []
    assert json.loads(run("namespace", "status", "ns", "--json").stdout)["leader"] is None


def test_gc_leaves_the_work_to_the_leader(place: Path) -> None:
    _init(place)
    with open_namespace("holdfast://ns", user="root") as namespace:
        _fill_and_delete(namespace)
        election = LeaderElection(namespace.database, SystemClock(), "other")
        assert election.try_to_lead()
        result = run("namespace", "gc", "ns")
        assert (result.exit_code, result.stdout) == (0, "another process is at work: nothing was done\n")
        election.resign()
        assert "removed 2 directories" in run("namespace", "gc", "ns").stdout


def test_gc_every_interval_until_it_is_stopped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trouble with the database in one round does not end the service."""
    _init(place)
    waits: list[float] = []
    rounds: list[str] = []
    collect = Namespace.collect

    def noted(self: Namespace, **more: object) -> object:
        rounds.append("round")
        if len(rounds) == 2:
            raise UnavailableError("the database cannot be reached")
        return collect(self, **more)  # type: ignore[arg-type]  # passed on

    def wait(self: SystemClock, duration_s: float) -> None:
        waits.append(duration_s)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Namespace, "collect", noted)
    monkeypatch.setattr(SystemClock, "sleep", wait)
    result = run("namespace", "gc", "ns", "--every", "90")
    assert (result.exit_code, waits, len(rounds)) == (130, [90.0] * 3, 3)
    assert result.stdout == "nothing to remove\n" * 2
    assert "error: the database cannot be reached" in result.stderr


def test_a_repair_beside_a_service_costs_it_one_sweep(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _init(place, "--safety-age", "0s")
    waits: list[float] = []

    def wait(self: SystemClock, duration_s: float) -> None:
        waits.append(duration_s)
        if len(waits) == 2:
            raise KeyboardInterrupt
        held.close()  # the repair is done

    monkeypatch.setattr(SystemClock, "sleep", wait)
    with open_namespace("holdfast://ns", user="root") as namespace, ExitStack() as held:
        held.enter_context(MaintenanceLock.hold(namespace.database, Environment(), "repair"))
        once = run("namespace", "gc", "ns", "--sweep")
        assert (once.exit_code, "another process is at work, a repair" in once.stderr) == (1, True)
        _fill_and_delete(namespace)
        result = run("namespace", "gc", "ns", "--sweep", "--every", "90")
        assert (result.exit_code, waits) == (130, [90.0] * 2)
        assert "removed 2 directories" in result.stdout, "the collection goes on"
        assert result.stderr.count("no sweep this time: another process is at work, a repair") == 1


@pytest.mark.parametrize("every", ["0", "soon", "0.5s", "9" * 400, "99999999999d"])
def test_a_wrong_interval(place: Path, every: str) -> None:
    _init(place)
    assert run("namespace", "gc", "ns", "--every", every).exit_code == 2


def test_the_module_runs_as_a_program(place: Path) -> None:
    """One command in a process of its own, with warnings as errors."""
    _init(place)
    found = subprocess.run(
        [sys.executable, "-W", "error", "-m", "holdfast.cli", "fs", "ls", "-d", "holdfast://ns/"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "holdfast://ns/\n", "")


# --- set --------------------------------------------------------------------------------------------------------------
def test_set_changes_the_configuration(place: Path) -> None:
    _init(place)
    result = run("namespace", "set", "ns", "--safety-age", "1h", "--superuser", "ann")
    assert result.exit_code == 0, result.output
    assert "changed namespace ns" in result.stdout
    assert "a sweep still spares" in result.stderr
    found = json.loads(run("namespace", "status", "ns", "--json").stdout)
    assert (found["safety_age_s"], found["superuser"]) == (3600, "ann")
    refused = run("namespace", "set", "ns", "--safety-age", "0s", "--user", "bob")
    assert (refused.exit_code, "superuser" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to change"),
        (["--data", "elsewhere"], "not at this place"),
        (["--endpoint-url", "http://h:1"], "nothing to change"),
        (["--superuser", ""], "the value is empty"),
    ],
)
def test_set_refuses_what_makes_no_sense(place: Path, arguments: list[str], sentence: str) -> None:
    _init(place)
    result = run("namespace", "set", "ns", *arguments)
    assert (result.exit_code, sentence in result.stderr) == (2, True), result.stderr
    assert not (place / "elsewhere").exists()


# --- fsck -------------------------------------------------------------------------------------------------------------
_LARGE = b"0123456789"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A new namespace in a file, with its data in a directory."""
    url = f"sqlite:///{tmp_path}/ns.db"
    configuration = Configuration(name="prod", data=str(tmp_path / "data"), superuser="hdfs", inline_bytes=4)
    init_namespace(configuration, url, register=False)
    return url


@pytest.fixture
def namespace(database: str) -> Iterator[Namespace]:
    with open_namespace(database, user="hdfs") as found:
        found.write_file("/a/small", b"123")
        found.write_file("/a/large", _LARGE)
        yield found


def _run(database: str, *arguments: str) -> Result:
    return CliRunner().invoke(fsck, ["prod", "--database", database, "--user", "hdfs", *arguments])


def _blob(namespace: Namespace, path: str) -> str:
    (extent,) = namespace.open(path).inode.extents
    return extent.blob


def test_a_healthy_namespace(database: str, namespace: Namespace) -> None:
    result = _run(database)
    assert result.exit_code == 0
    assert result.output == "healthy: prod (2 directories, 2 files of 13 B, 1 blob of 14 B, not read: see --read)\n"
    document = json.loads(_run(database, "--json").output)
    assert document["healthy"] is True
    assert document["counts"]["directories"] == 2
    assert (document["findings"], document["totals"]) == ([], {})


def test_damage(database: str, namespace: Namespace) -> None:
    namespace.blobs.store.delete(namespace.blobs.key(_blob(namespace, "/a/large")))
    result = _run(database)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0] == "damage: bytes of a file are missing: /a/large"
    assert lines[1].startswith("  next: restore the object from a backup")
    assert lines[-1].startswith("DAMAGED: 1 finding in prod")
    again = _run(database, "--repair")
    assert again.exit_code == 1
    document = json.loads(_run(database, "--json").output)
    assert [finding["kind"] for finding in document["findings"]] == ["missing-blob"]
    assert document["findings"][0]["path"] == "/a/large"


def test_leftovers_are_no_damage(database: str, namespace: Namespace) -> None:
    namespace.database.commit(Commit(adds={times_key(10**6): 5}))
    result = _run(database)
    assert result.exit_code == 0
    assert "leftover: the time of a directory that does not exist" in result.output
    assert result.output.splitlines()[-1].startswith("healthy: prod")


def test_a_repair(database: str, namespace: Namespace) -> None:
    blob = _blob(namespace, "/a/large")
    namespace.database.commit(Commit(puts={garbage_key(1, blob): b""}))
    assert _run(database).exit_code == 1
    result = _run(database, "--repair")
    assert result.exit_code == 0
    assert result.output.startswith("repaired: a blob of a file is noted as garbage: /a/large\n")
    namespace.collect()
    assert namespace.open("/a/large").read() == _LARGE
    document = json.loads(_run(database, "--repair", "--json").output)
    assert (document["repaired"], document["lost_and_found"]) == ([], "")


def test_what_belongs_nowhere_is_shown(database: str, namespace: Namespace) -> None:
    namespace.mkdirs("/b/c")
    key = next(key for key, _ in namespace.database.scan(b"i", b"j", 100).records if key.endswith(b"b"))
    namespace.database.commit(Commit(deletes=[key]))
    result = _run(database, "--repair")
    assert result.exit_code == 0
    (shown,) = [line for line in result.output.splitlines() if line.startswith("what belonged nowhere is in ")]
    assert "c" in [entry.name for entry in namespace.walk(shown.removeprefix("what belonged nowhere is in "))]


def test_only_the_superuser_repairs(database: str, namespace: Namespace) -> None:
    result = CliRunner().invoke(fsck, ["prod", "--database", database, "--user", "nobody", "--repair"])
    assert result.exit_code == 2
    assert "only the superuser may repair" in result.output


def test_an_unknown_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NAMESPACES", str(tmp_path / "catalog.json"))
    result = CliRunner().invoke(fsck, ["nothing-of-this-name"])
    assert result.exit_code == 2
    assert "no such namespace" in result.output


def test_a_sweep_says_what_it_found(namespace: Namespace, capsys: pytest.CaptureFixture[str]) -> None:
    namespace.database.commit(Commit(adds={times_key(10**6): 5}))
    assert sweep_namespace(namespace, Output())["records"] == 1
    assert capsys.readouterr().out == "deleted 1 record of directories that do not exist\n"
    assert sweep_namespace(namespace, Output())["records"] == 0
    assert capsys.readouterr().out == ""
