"""Check which committer runs on which store, and what a refusal says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.commit import COMMITTERS, TWO_PHASE, SaveMode, get_committer, require_fit
from holdfast.commit.committer import CONDITIONAL_WRITES, CONSISTENT_LISTING, RENAME_DIR, UNFENCED
from holdfast.commit.registry import fitting_committers
from holdfast.errors import InvalidRequestError, UnsupportedError
from holdfast.stores.base import Capabilities, MultipartLimits, Support
from holdfast.stores.memory import MemoryStore
from tests.simulation.world import World

S3 = Capabilities(conditional_put=Support.YES, multipart=MultipartLimits(), metadata=True, copy=True)
DISK = Capabilities(conditional_put=Support.YES, multipart=MultipartLimits(), rename=True, rename_dir=True)


def test_names_are_found_however_they_are_spelled() -> None:
    assert get_committer(" Two-Phase ") is TWO_PHASE
    with pytest.raises(InvalidRequestError, match="did you mean two_phase"):
        get_committer("two_phases")


def test_the_default_fits_everywhere_and_comes_first() -> None:
    assert [fitting_committers(can)[0].name for can in (S3, DISK)] == ["two_phase", "two_phase"]


def test_what_runs_on_an_object_store_and_on_a_disk() -> None:
    """Design 5: `manifest` and `file-v1` need renames, `magic` needs a consistent listing."""
    on_s3 = {committer.name for committer in fitting_committers(S3)}
    on_disk = {committer.name for committer in fitting_committers(DISK)}
    late = {committer.name for committer in fitting_committers(replace(S3, consistent_listing=False))}
    assert on_s3 == {"two_phase", "magic", "staging-directory", "staging-partitioned"}
    assert on_disk == on_s3 | {"manifest", "file-v1", "file-v2"}
    assert late == on_s3 - {"magic"}


@pytest.mark.parametrize("name", ["manifest", "file-v1", "file-v2"])
def test_what_renames_never_runs_without_rename(name: str) -> None:
    """Scenario 63; paper 002: the store does not meet the rename requirements, consistent or not."""
    assert " rename, which the store does not offer" in COMMITTERS[name].explain_misfit(S3, UNFENCED)


class Unconditional(MemoryStore):
    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, conditional_put=Support.NO)


def test_a_refusal_names_what_would_do() -> None:
    ctx = World("upload").context(store=MemoryStore())
    careless = replace(TWO_PHASE, name="careless", needs=(CONDITIONAL_WRITES,))
    with pytest.raises(
        UnsupportedError,
        match=r"careless needs conditional writes.*: choose magic.*, or accept that with allow_unfenced",
    ):
        require_fit(careless, World("upload").context(store=Unconditional()), SaveMode.APPEND)
    picky = replace(TWO_PHASE, name="picky", needs=(RENAME_DIR, CONSISTENT_LISTING))
    with pytest.raises(UnsupportedError, match=r"picky needs atomic directory rename.*: choose another committer"):
        picky.setup_job(ctx, SaveMode.APPEND)


def test_a_mode_that_a_committer_lacks_is_refused() -> None:
    plain = replace(TWO_PHASE, name="plain", modes=frozenset({SaveMode.APPEND}))
    with pytest.raises(InvalidRequestError, match="plain supports only the modes append"):
        plain.setup_job(World("upload").context(), SaveMode.OVERWRITE)
