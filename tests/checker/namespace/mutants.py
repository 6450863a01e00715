"""Mistakes that a developer might have made in the namespace, and the scenes that must find them."""

from __future__ import annotations

from functools import partial

from holdfast.namespace import file_writer, listing, operation, receipts, sweep, view
from holdfast.namespace.collector import Collector
from holdfast.namespace.fsck import survey
from holdfast.namespace.namespace import Namespace
from holdfast.namespace.object_store import objects
from holdfast.namespace.object_store.store import NamespaceStore
from holdfast.namespace.operation import Changes
from holdfast.namespace.operations import base, files
from holdfast.namespace.operations.files import Publish, WriteUnderLease
from holdfast.namespace.operations.names import Delete, Rename
from holdfast.namespace.permissions import Caller
from holdfast.namespace.phases import OperationRunner
from holdfast.namespace.view import View
from holdfast_checker.kernel.state_space import BROKEN_CODE
from tests.checker.committers.planting import swap
from tests.checker.namespace import mistakes, sweep_mistakes
from tests.checker.scene_mutants import SceneMutant

__all__ = ["MUTANTS"]


_Mutant = partial(SceneMutant, breaks="N2")

MUTANTS = (
    # --- validation ---------------------------------------------------------------------------------------------------
    _Mutant(
        name="parent-only-in-create",
        slip="A creation validates the parent, and not the directories above it.",
        swap=swap(View.collect_seen_versions, mistakes.validate_the_parent),
        scenes=("below-a-rename", "delete-tree"),
    ),
    _Mutant(
        name="parents-only-in-rename",
        slip="A rename validates both parents, and not the directories above them.",
        swap=swap(View.collect_seen_versions, mistakes.validate_the_parents),
        scenes=("under-itself",),
        breaks="N1",
    ),
    _Mutant(
        name="hints-are-not-compared",
        slip="The versions of inodes that were known before are not compared.",
        swap=swap(View.collect_seen_versions, mistakes.believe_hints),
        scenes=("stale-hints", "below-a-rename"),
    ),
    _Mutant(
        name="guesses-answer",
        slip="An error that follows from hints is raised, without a look at the database.",
        swap=swap(view.read_view_from_cache, mistakes.guess_the_answer),
        scenes=("stale-hints",),
    ),
    _Mutant(
        name="reads-step-by-step",
        slip="A path that is not known yet is read component by component, and what was read before is not read again.",
        swap=swap(view.read_view, mistakes.read_step_by_step),
        scenes=("cold-hints",),
    ),
    _Mutant(
        name="inserts-are-puts",
        slip="A record that must not exist is written as if it might.",
        swap=swap(Changes.to_commit, mistakes.write_in_place_of_insert),
        scenes=("same-name", "common-parents"),
    ),
    _Mutant(
        name="commits-again",
        slip="A commit whose reply was lost is repeated blindly.",
        swap=swap(OperationRunner._try_operation, mistakes.commit_again),
        scenes=("lost-rename",),
    ),
    # --- permissions --------------------------------------------------------------------------------------------------
    _Mutant(
        name="permission-at-open",
        slip="Permissions are checked when a file is opened, and not again when it is published.",
        swap=swap(OperationRunner.run, mistakes.publish_as_superuser),
        scenes=("write-withdrawn", "search-withdrawn"),
    ),
    _Mutant(
        name="permission-by-hints",
        slip="A file is read without a check if the user was allowed to read it before.",
        swap=swap(OperationRunner.read, mistakes.read_what_was_looked_at),
        scenes=("read-withdrawn",),
    ),
    _Mutant(
        name="not-sticky",
        slip="Who may write a sticky directory may remove the entries of others.",
        swap=swap(Caller.passes_sticky_bit_check, mistakes.forget_stickiness),
        scenes=("sticky",),
    ),
    # --- directories --------------------------------------------------------------------------------------------------
    _Mutant(
        name="delete-without-count",
        slip="Nothing guards the absence of children while a directory is deleted.",
        swap=swap(Delete.execute, mistakes.delete_without_count),
        scenes=("delete-directory",),
        breaks="N1",
    ),
    _Mutant(
        name="overwrite-without-count",
        slip="Nothing guards the absence of children while a directory is replaced.",
        swap=swap(Rename.execute, mistakes.rename_without_count),
        scenes=("replaced-directory",),
    ),
    _Mutant(
        name="into-itself",
        slip="A rename does not look whether the source is above the target.",
        swap=swap(Rename._check_rename_allowed, mistakes.move_into_itself),
        scenes=("into-itself",),
        breaks="N1",
    ),
    _Mutant(
        name="tree-forgotten",
        slip="A directory is deleted without a note of what was below it.",
        swap=swap(base.record_deleted_tree, mistakes.forget_the_tree),
        scenes=("delete-tree", "delete-and-list"),
        breaks="N1",
    ),
    _Mutant(
        name="lists-in-two-snapshots",
        slip="The path of a directory and its entries are read in two snapshots.",
        swap=swap(listing._read_children_view, mistakes.list_in_two),
        scenes=("list-the-old-path",),
    ),
    _Mutant(
        name="walks-without-snapshot",
        slip="A walk lists one directory after the other, each as it is by then.",
        swap=swap(listing.walk_tree, mistakes.walk_in_many),
        scenes=("walk-and-collect", "crossing-renames"),
    ),
    # --- files --------------------------------------------------------------------------------------------------------
    _Mutant(
        name="lease-not-asked",
        slip="A writer completes its file without a look at the lease.",
        swap=swap(WriteUnderLease.execute, mistakes.take_any_lease),
        scenes=("recovery", "lease-theft"),
    ),
    _Mutant(
        name="writers-not-refused",
        slip="A lease is taken over although its writer is alive.",
        swap=swap(files.require_no_live_writer, mistakes.refuse_nobody),
        scenes=("two-appenders", "concat-and-append"),
    ),
    _Mutant(
        name="lease-stays-behind",
        slip="The rename of a file does not tell its lease.",
        swap=swap(Rename.execute, mistakes.forget_the_lease),
        scenes=("moved-writer",),
    ),
    _Mutant(
        name="writer-stays-behind",
        slip="A writer looks for its file where it was opened.",
        swap=swap(file_writer._update_path, mistakes.stay_at_the_path),
        scenes=("moved-writer",),
    ),
    _Mutant(
        name="nothing-counts-as-done",
        slip="A writer with nothing to add, whose lease was recovered, is told that it has closed its file.",
        swap=swap(WriteUnderLease.execute, mistakes.take_nothing_for_done),
        scenes=("nothing-new", "sure-writer-of-nothing"),
    ),
    _Mutant(
        name="adds-again",
        slip="What a writer repeats because it got no reply is added once more.",
        swap=swap(WriteUnderLease.execute, mistakes.add_again),
        scenes=("sure-writer",),
    ),
    _Mutant(
        name="any-file-at-the-path",
        slip="A writer continues in another file that has the path of its own by now.",
        swap=swap(WriteUnderLease.execute, mistakes.write_what_has_the_path),
        scenes=("overwritten-writer", "writer-in-a-deleted-tree"),
    ),
    _Mutant(
        name="lease-comes-later",
        slip="A file is created for a writer, whose lease is written only when it is renewed.",
        swap=swap(Publish.execute, mistakes.create_without_lease),
        scenes=("create-under-lease", "create-beside-a-lease", "overwritten-writer"),
        breaks="N1",
    ),
    _Mutant(
        name="batch-in-two",
        slip="Several files are published in a commit each.",
        swap=swap(file_writer.publish_files, mistakes.publish_one_by_one),
        scenes=("batch",),
    ),
    _Mutant(
        name="changes-in-two",
        slip="The changes of an object store are made in a commit each.",
        swap=swap(NamespaceStore.apply, mistakes.put_one_by_one),
        scenes=("object-store-batch",),
    ),
    _Mutant(
        name="publishes-behind-anything",
        slip="A writer adds to whatever the file has, although a crash may have undone what it has published before.",
        swap=swap(WriteUnderLease._require_unchanged_file_end, mistakes.take_any_end),
        scenes=("database-crash-under-a-writer",),
    ),
    _Mutant(
        name="ids-in-batches",
        slip="Ids are reserved in batches, of which a crash may undo the reservation.",
        swap=swap(OperationRunner._make_context, mistakes.reserve_ids),
        scenes=("database-crash-under-creations",),
        breaks="N1",
    ),
    # --- what is deleted ----------------------------------------------------------------------------------------------
    _Mutant(
        name="collects-blindly",
        slip="The collector removes what it has listed without comparing versions: another one may have been first.",
        swap=swap(Changes.to_commit, mistakes.collect_without_validation),
        scenes=("two-leaders",),
        breaks="N5",
    ),
    _Mutant(
        name="recovers-blindly",
        slip="The leader recovers a lease without a look whether it was renewed since.",
        swap=swap(Changes.to_commit, mistakes.collect_without_validation),
        scenes=("renewal",),
    ),
    _Mutant(
        name="no-safety-age",
        slip="A blob is deleted as soon as no file refers to it, although a reader may have opened the file.",
        swap=swap(Collector._collect_garbage, mistakes.collect_without_age),
        scenes=("overwrite-and-read",),
        breaks=BROKEN_CODE,
    ),
    _Mutant(
        name="garbage-forgotten",
        slip="The bytes of a file that is replaced or deleted stay.",
        swap=swap(base.discard_blobs, mistakes.forget_garbage),
        scenes=("overwrite-and-read", "delete-tree"),
        breaks="leftovers",
    ),
    # --- uploads and sweeps -------------------------------------------------------------------------------------------
    _Mutant(
        name="aborts-blindly",
        slip="An abort deletes the parts of an upload that somebody else has completed since.",
        swap=swap(NamespaceStore.abort_upload, sweep_mistakes.abort_without_validation),
        scenes=("complete-or-abort",),
        breaks="N3",
    ),
    _Mutant(
        name="uploads-not-validated",
        slip="The record of an upload is not compared when the upload is completed.",
        swap=swap(Changes.to_commit, sweep_mistakes.complete_without_validation),
        scenes=("complete-or-abort", "complete-twice"),
    ),
    _Mutant(
        name="parts-not-validated",
        slip="A part is added to an upload that somebody else has ended since.",
        swap=swap(NamespaceStore.upload_part, sweep_mistakes.add_a_part_without_validation),
        scenes=("late-part",),
        breaks="leftovers",
    ),
    _Mutant(
        name="parts-forgotten",
        slip="Parts that nobody names when an upload is completed stay.",
        swap=swap(objects._parts_left_out, sweep_mistakes.forget_what_is_left_out),
        scenes=("late-part",),
        breaks="leftovers",
    ),
    _Mutant(
        name="sweep-ignores-uploads",
        slip="A sweep deletes the parts of uploads that are not completed yet.",
        swap=swap(survey._upload_rows, sweep_mistakes.ignore_uploads),
        scenes=("sweep-and-complete",),
        breaks="leftovers",
    ),
    _Mutant(
        name="sweep-without-snapshot",
        slip="A sweep reads the records in several snapshots: an upload may become a file in between.",
        swap=swap(Namespace.sweep, sweep_mistakes.sweep_without_snapshot),
        scenes=("sweep-and-complete",),
        breaks="leftovers",
    ),
    _Mutant(
        name="sweep-ignores-age",
        slip="A sweep deletes a blob whose file is about to be published.",
        swap=swap(survey.add_blobs, sweep_mistakes.list_the_young),
        scenes=("sweep-and-publish",),
        breaks="leftovers",
    ),
    _Mutant(
        name="sweep-ignores-leases",
        slip="A sweep deletes an old blob that a slow writer may still publish, because it has the lease.",
        swap=swap(sweep.find_unowned_objects, sweep_mistakes.ignore_leases),
        scenes=("sweep-and-slow-writer",),
        breaks="leftovers",
    ),
    # --- quotas and ids -----------------------------------------------------------------------------------------------
    _Mutant(
        name="no-bound",
        slip="The counter of a quota is compared before the commit, and not in it.",
        swap=swap(operation._add_usage, mistakes.charge_without_bound),
        scenes=("quota",),
        breaks="N5",
    ),
    _Mutant(
        name="mark-not-validated",
        slip="A tree is moved into a quota with a count during which it may have changed.",
        swap=swap(Rename._check_rename_allowed, mistakes.take_any_mark),
        scenes=("quota-expired",),
        breaks="N5",
    ),
    # --- requests that come again -------------------------------------------------------------------------------------
    _Mutant(
        name="repeats-are-new",
        slip="A request that comes again is carried out again.",
        swap=swap(receipts._Once._may_be_repeated, mistakes.take_repeats_for_new),
        scenes=("dead-server", "repeated-delete", "repeated-and-undone"),
    ),
)
