"""Every kind of corruption is found as what it is, repaired, and gone; a healthy namespace is found healthy."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from holdfast.namespace.fsck import Report, Severity, check
from holdfast.namespace.fsck.findings import FINDING_KINDS
from holdfast.namespace.fsck.repair import REPAIRS
from holdfast.namespace.inode import decode_inode, encode_inode
from holdfast.namespace.keys import ROOT_ID, ROOT_KEY, deleted_key, inode_key
from holdfast.transactions.base import Commit
from tests.namespace_world import HookedDatabase, World, all_records
from tests.unit.namespace.fsck.plants import LARGE, PLANTS, Plant, Site, healthy_site, share_blobs

_each = pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)


def test_each_file_of_a_blob_is_named() -> None:
    site = healthy_site()
    share_blobs(site, "/top", "/a/b/large")
    share_blobs(site, "/a/b/c/other", "/a/b/large")
    (finding,) = site.namespace.check().findings
    named = {finding.path, *finding.detail.removeprefix("and ").split(" and ")}
    assert named == {"/top", "/a/b/large", "/a/b/c/other"} and len(finding.keys) == 3


@_each
def test_it_is_found_as_what_it_is(plant: Plant) -> None:
    site = healthy_site()
    plant.plant(site)
    report = site.namespace.check()
    assert {kind.name: total for kind, total in report.totals.items()} == plant.kinds
    assert len(report.findings) == sum(plant.kinds.values())
    if plant.path:
        assert plant.path in {finding.path for finding in report.findings}
    is_damage = any(kind.severity is Severity.DAMAGE for kind in report.totals)
    assert report.is_healthy is not is_damage
    json.dumps(report.to_json())
    assert site.namespace.check() == report, "a check changes nothing"


@_each
def test_it_is_repaired(plant: Plant) -> None:
    site = healthy_site()
    contents = _contents(site)
    plant.plant(site)
    report = site.namespace.repair()
    left = {kind.name: total for kind, total in report.report.totals.items()}
    assert left == (plant.kinds if plant.stays else {}), report
    assert [str(failure.reason) for failure in report.failed] == []
    assert {finding.kind.name for finding in report.repaired} >= (set() if plant.stays else set(plant.kinds))
    json.dumps(report.to_json())
    again = site.namespace.repair()
    assert again.repaired == []
    assert {kind.name: total for kind, total in again.report.totals.items()} == left
    if not plant.stays:
        assert _all_bytes(site) >= contents, "the content of a file is lost"
        inodes = [decode_inode(key, record.value) for key, record in site.world.records(b"i").items()]
        assert all(inode.has_quota or not inode.quota_id for inode in inodes)
    site.namespace.collect()
    assert site.namespace.check().totals.keys() <= again.report.totals.keys()


@_each
def test_what_others_delete_before_it_is_repaired_harms_nothing(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    site = healthy_site()
    plant.plant(site)

    def check_before_others(*given: Any, **named: Any) -> Report:
        report = check(*given, **named)
        monkeypatch.undo()
        for key in {key for finding in report.findings for key in finding.keys}:
            site.delete(key)
        return report

    monkeypatch.setattr(importlib.import_module("holdfast.namespace.fsck.repair"), "check", check_before_others)
    site.namespace.repair()
    assert plant.stays or site.namespace.repair().report.is_healthy


def _contents(site: Site) -> set[bytes]:
    return {site.namespace.open(path).read() for path in ("/a/b/small", "/a/b/large", "/top", "/open", "/quota/file")}


def _all_bytes(site: Site) -> set[bytes]:
    return {site.namespace.open(entry.path).read() for entry in site.namespace.walk("/") if not entry.is_directory}


def test_every_kind_is_planted() -> None:
    planted = {name for plant in PLANTS.values() for name in plant.kinds}
    assert planted == set(FINDING_KINDS)


def test_every_kind_is_repaired_or_says_that_it_is_not() -> None:
    assert {kind.name for kind in FINDING_KINDS.values() if "repair" in kind.next_act.replace("no repair", "")} == set(
        REPAIRS
    )


def test_all_of_them_at_once() -> None:
    """The repairs of several corruptions do not disturb each other."""
    site = healthy_site()
    names = [
        "bad-name",
        "duplicate-directory",
        "cycle",
        "unowned-small",
        "writer-without-lease",
        "lease-without-file",
        "stray-time",
        "stray-usage",
        "wrong-names",
        "damaged-lease",
        "damaged-root",
    ]
    for name in names:
        PLANTS[name].plant(site)
    report = site.namespace.repair()
    assert {kind.name for kind in report.report.totals} == {"stray-time", "stray-usage"}
    assert report.failed == []
    assert LARGE in _all_bytes(site)
    site.namespace.sweep()
    assert site.namespace.check().totals == {}


def test_more_findings_than_one_round_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are counted, some are shown, and a repair goes on until none is left."""
    monkeypatch.setattr(importlib.import_module("holdfast.namespace.fsck.check"), "MOST_FINDINGS", 2)
    site = healthy_site()
    for number in range(5):
        site.put(deleted_key(10**6 + number), b"?")
        site.put(inode_key(1, b"damaged-%d" % number), b"?")
    report = site.namespace.check()
    assert {kind.name: total for kind, total in report.totals.items()} == {"damaged-record": 10}
    assert len(report.findings) == 2
    repaired = site.namespace.repair()
    assert repaired.report.totals == {}
    assert len(repaired.repaired) == 10
    kept = [entry for entry in site.namespace.walk("/lost+found") if not entry.is_directory]
    assert [site.namespace.open(entry.path).read() for entry in kept] == [b"?"] * 10


def test_a_repair_says_where_it_keeps_what_belongs_nowhere() -> None:
    site = healthy_site()
    assert site.namespace.repair().shelf == ""
    site.put(inode_key(1, b"damaged"), b"?")
    shelf = site.namespace.repair().shelf
    (kept,) = [entry for entry in site.namespace.walk("/lost+found") if not entry.is_directory]
    assert kept.path.startswith(f"{shelf}/") and shelf.startswith("/lost+found/")


def test_the_bytes_of_a_damaged_root_are_kept() -> None:
    site = healthy_site()
    site.put(ROOT_KEY, b"what was the root")
    site.namespace.repair()
    assert b"what was the root" in _all_bytes(site)


def test_a_file_is_no_root() -> None:
    site = healthy_site()
    site.put(ROOT_KEY, encode_inode(replace(site.inode(site.key("/top")), id=ROOT_ID)))
    assert any("root" in kind.name for kind in site.namespace.check().totals)
    assert not site.namespace.repair().report.totals
    assert site.namespace.status("/").is_directory


def test_progress_is_told_in_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("holdfast.namespace.fsck.survey"), "_PAGE", 2)
    site, told = healthy_site(), []

    def progress(stage: str, done: int, _total: int) -> None:
        if stage == "records":
            told.append(done)

    site.namespace.check(progress)
    assert told == list(range(2, told[-1] + 1, 2))
    assert told[-1] <= len(all_records(site.world.database))


def test_a_counter_that_is_gone_counts_as_nothing() -> None:
    world = World()
    namespace = world.client()
    namespace.mkdirs("/quota")
    namespace.set_quota("/quota", names=10)
    (key,) = [one for one in world.records(b"u") if one.endswith(b"n")]
    world.database.commit(Commit(deletes=[key]))
    found = namespace.check()
    assert [one.detail for one in found.findings] == ["names 0, counted 1; space 0, counted 0"]


def test_garbage_that_is_collected_beside_a_check_is_no_finding() -> None:
    """The listing shows a blob that a collector deletes, with its note, before the snapshot."""
    world = World(safety_age_s=3600)
    namespace = world.client()
    namespace.write_file("/f", LARGE)
    namespace.delete("/f")
    world.clock.at_s += 7200

    def collect(call: str, argument: object) -> None:
        if call == "snapshot":
            assert namespace.collect().blobs == 1

    assert world.client(database=HookedDatabase(world.database, collect)).check().totals == {}


def test_a_file_at_lost_and_found_is_in_the_way_of_a_repair() -> None:
    world = World()
    namespace = world.client()
    namespace.write_file("/lost+found", b"1")
    world.database.commit(Commit(inserts={inode_key(1, b"damaged"): b"?"}))
    (failure,) = namespace.repair().failed
    assert "is a file" in failure.reason
    namespace.rename("/lost+found", "/other")
    assert not namespace.repair().report.totals


def test_what_a_kind_of_finding_means_is_told_to_its_end() -> None:
    text = (resources.files("holdfast.namespace.fsck") / "checks.sql").read_text("utf-8")
    told = " ".join(f"{one.title} {one.next_act}" for one in FINDING_KINDS.values())
    continued = [line.removeprefix("--   ") for line in text.splitlines() if line.startswith("--   ")]
    assert continued and all(line in told for line in continued)
