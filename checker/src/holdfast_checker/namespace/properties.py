"""Define the properties of a namespace: N1 tree, N2 linearizability, N3 whole files, N5 quota counters, no leftovers.

N4 (one writer per file) is part of N2: the sequential model knows which writer holds a lease, and refuses others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from holdfast.namespace.blobs import BLOBS as FOLDER
from holdfast.namespace.blobs import BlobStore
from holdfast.namespace.collector import Collector
from holdfast.namespace.keys import ROOT_KEY, entry_name_in_key, kind_range, usage_key
from holdfast_checker.framework.scene_files import Judges, read_rules
from holdfast_checker.framework.subject import Goal, Rule
from holdfast_checker.histories.history import Operation, Outcome, recorded_operations
from holdfast_checker.histories.linearizable import Model, client_operations, judge_with_crashes, lossy_crashes
from holdfast_checker.kernel.calls import canonical_key
from holdfast_checker.kernel.world import View
from holdfast_checker.namespace.actors import BLOBS, NamespaceSetting
from holdfast_checker.namespace.calls import PUBLISH
from holdfast_checker.namespace.contents import NamespaceContents, decode_namespace, read_extents, tree_of_records
from holdfast_checker.namespace.model import ModelNode, ModelTree, apply_to_model, split_path
from holdfast_checker.simulated.database import DATABASE, DatabaseCopy, DatabaseState, RecordMap
from holdfast_checker.simulated.memory import RestorableStore, StoreSnapshot
from holdfast_checker.simulated.time import CountingIds, ManualClock
from holdfast_checker.transactions.properties import CRASHED, goal_for_operations


def _blobs_in_store(view: View) -> StoreSnapshot:
    return cast("StoreSnapshot", view.states[BLOBS])


# --- N1, N3, N5 -------------------------------------------------------------------------------------------------------
def _judge_tree_structure(setting: NamespaceSetting, before: View, after: View, actor: str) -> str | None:
    return "; ".join(decode_namespace(after).structure_faults) or None


def _judge_missing_bytes(setting: NamespaceSetting, before: View, after: View, actor: str) -> str | None:
    contents, objects = decode_namespace(after), _blobs_in_store(after).objects
    lost = sorted(
        [*contents.missing_inline_blobs, *(blob for blob in contents.blobs if f"{FOLDER}{blob}" not in objects)]
    )
    return f"the bytes of files are missing: {', '.join(lost)}" if lost else None


def _judge_quota_counters(setting: NamespaceSetting, before: View, after: View, actor: str) -> str | None:
    contents = decode_namespace(after)
    return "; ".join(contents.wrong_quota_counters) or _describe_exceeded_quota(decode_namespace(before), contents)


def _describe_exceeded_quota(before: NamespaceContents, after: NamespaceContents) -> str | None:
    for key, inode in after.inodes.items():
        if inode.names_quota is not None:
            now = sum(1 for _ in after.descendants(inode))
            old = next((one for one in before.inodes.values() if one.id == inode.id), None)
            was = 0 if old is None else sum(1 for _ in before.descendants(old))
            if now > inode.names_quota and now > was and (old is None or old.names_quota is not None):
                return f"{entry_name_in_key(key).decode()!r} has {now} names, and its quota is {inode.names_quota}"
    return None


# --- N2 ---------------------------------------------------------------------------------------------------------------
def _judge_linearizability(setting: NamespaceSetting, view: View) -> str | None:
    operations, crashes = client_operations(recorded_operations(view)), lossy_crashes(recorded_operations(view))
    last = max((one.ended or one.invoked for one in operations), default=0)
    blobs = {key: one.data for key, one in _blobs_in_store(view).objects.items()}
    final = _reads_of_whole_final_tree(last, decode_namespace(view), blobs)

    def judge_history() -> str | None:
        uploads = tuple((name, split_path(pending.key)) for name, pending in sorted(setting.uploads.items()))
        initial = replace(tree_of_records(setting.start, setting.blobs), uploads=uploads, users=setting.scene.users)
        model = Model(initial=initial, apply=apply_to_model)
        return judge_with_crashes([*operations, *final], crashes, model, _replace_undone_operation) or None

    return setting.get_cached_verdict(canonical_key((operations, crashes, [one.value for one in final])), judge_history)


def _replace_undone_operation(operation: Operation) -> Operation | None:
    """Return the model's operation for one that a crash has undone: the writer believes it published its bytes."""
    if operation.name not in (*PUBLISH, "upload"):
        return None
    return replace(operation, name="believe", args=operation.args[:1], value=None)


def _reads_of_whole_final_tree(last: int, contents: NamespaceContents, blobs: Mapping[str, bytes]) -> list[Operation]:
    """Return reads of the whole tree after the history."""

    def make_late_read(name: str, path: str, value: object) -> Operation:
        return Operation(f"afterwards {name} {path}", name, (path,), last + 1, last + 2, Outcome.OK, value)

    root = contents.inodes.get(ROOT_KEY)
    found = sorted(contents.paths(root), key=lambda one: one[0]) if root is not None else []
    reads = [make_late_read("walk", "/", tuple("/" + "/".join(path) for path, _inode in found if path))]
    for path, inode in found:
        if not inode.is_directory:
            try:
                content: object = read_extents(contents, blobs, inode.extents).decode()
            except KeyError:
                content = "its bytes are lost"
            reads.append(make_late_read("read", "/" + "/".join(path), content))
    return reads


# --- leftovers --------------------------------------------------------------------------------------------------------
def _judge_garbage_collection(setting: NamespaceSetting, view: View) -> str | None:
    """Run the shipped garbage collector at the end: once for trees and leases, once for the garbage of that."""
    records, image = cast("DatabaseState", view.states[DATABASE]).records, _blobs_in_store(view)
    key = (records.keys, tuple((one.value, one.number) for one in records.records), image.key)  # without versions
    return setting.get_cached_verdict(key, lambda: _collect_and_find_leftovers(setting, records, image))


def _collect_and_find_leftovers(setting: NamespaceSetting, records: RecordMap, image: StoreSnapshot) -> str | None:
    database = DatabaseCopy(records)
    clock = ManualClock(setting.start_s)
    store = RestorableStore(clock=clock, ids=CountingIds())
    store.restore(image)
    blobs = BlobStore(store, "", CountingIds())
    before = _tree_or_none(records, image)
    for _ in range(2):
        clock.at_s += setting.configuration.safety_age_s + 24 * 3600
        Collector(database, blobs, clock, setting.configuration.safety_age_s).run()
    # A writer that dies may leave a blob that no file refers to.
    leaves_blobs = bool(setting.scene.budgets) or setting.scene.crashes > 0
    return _find_leftovers(database, store, before, leaves_blobs)


def _tree_or_none(records: RecordMap, image: StoreSnapshot) -> ModelTree | None:
    """Return the state of the model, without writers; None if bytes are missing."""
    try:
        found = tree_of_records(records, {key: one.data for key, one in image.objects.items()})
    except KeyError:
        return None
    return ModelTree(tuple((path, ModelNode(node.content, quota=node.quota)) for path, node in found.nodes))


def _find_leftovers(
    database: DatabaseCopy, store: RestorableStore, before: ModelTree | None, leaves_blobs: bool
) -> str | None:
    contents = NamespaceContents(database.records.as_dict())
    found = []
    for kind, what in ((b"r", "deleted trees"), (b"l", "leases"), (b"g", "notes of garbage")):
        start, end = kind_range(kind)
        count = sum(start <= key < end for key in contents.records)
        if count:
            found.append(f"{count} {what}")
    quotas = {usage_key(one.quota_id, what) for one in contents.inodes.values() for what in (b"n", b"s")}
    lost = [key for key in contents.records if key.startswith(b"u") and key not in quotas]
    found += [f"{len(lost)} counters of nothing"] if lost else []
    used = {one.blob for inode in contents.inodes.values() for one in inode.extents}
    used |= {one.blob for upload in contents.uploads for one in upload.parts.values()}
    stray = {key[1:].decode() for key in contents.records if key.startswith(b"s")} - used
    if not leaves_blobs:
        stray |= {key.removeprefix(FOLDER) for key in store.take_snapshot().objects} - used
    found += [f"blobs of no file: {', '.join(sorted(stray))}"] if stray else []
    if before is not None and _tree_or_none(database.records, store.take_snapshot()) != before:
        found.append("the collection has changed the tree")
    return f"after a collection, there are: {'; '.join(found)}" if found else None


_JUDGES: Mapping[str, Judges] = {
    "N2": (None, _judge_linearizability),
    "N1": (_judge_tree_structure, None),
    "N3": (_judge_missing_bytes, None),
    "N5": (_judge_quota_counters, None),
    "leftovers": (None, _judge_garbage_collection),
}
"""The functions that judge a step and the end of a history, by the name of the property."""

RULES: Mapping[str, Rule] = read_rules("holdfast_checker.namespace", _JUDGES)


# --- goals ------------------------------------------------------------------------------------------------------------
def _is_call_refused(operation: Operation) -> bool:
    return isinstance(operation.value, str) and operation.value.endswith("Error")


GOALS: Mapping[str, Goal] = {
    "all": goal_for_operations(
        "every call does what it is asked for",
        lambda operations: all(
            one.name == "collect" or (one.outcome is Outcome.OK and not _is_call_refused(one)) for one in operations
        ),
    ),
    "refused": goal_for_operations(
        "a call is refused, because another one was first", lambda operations: any(map(_is_call_refused, operations))
    ),
    "crashed": CRASHED,
    "unknown": goal_for_operations(
        "the outcome of a call stays unknown to its caller",
        lambda operations: any(one.outcome is Outcome.UNKNOWN and one.name != "collect" for one in operations),
    ),
}
"""By name."""
