"""Test that the generated store behaves like one that holds its files, and that the measured steps do their work."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.generated_store import GeneratedFiles, GeneratedStore
from benchmarks.scale_runs import STEPS, Taken
from holdfast.commit.ids import JobId
from holdfast.commit.two_phase.records import decode_manifest
from holdfast.errors import NotFoundError
from holdfast.stores.base import Part, iter_objects, iter_uploads
from holdfast.stores.memory import MemoryStore

JOB = JobId("20261122120000000-0123456789ab")


@pytest.fixture(params=[0, 3])
def files(request: pytest.FixtureRequest) -> GeneratedFiles:
    return GeneratedFiles(JOB, 5, 3, request.param)


def test_what_is_generated_is_listed_as_what_is_held(files: GeneratedFiles) -> None:
    store, held = GeneratedStore(files), MemoryStore()
    for number in range(0, files.files, 2):
        store.complete_upload(files.path(number), f"{number:032x}", decoded(files, number))
        held.put(files.path(number), b"1234567")
    for task in range(files.tasks):
        held.put(files.manifest_key(task), b"1")
    for key in ("_holdfast/log/1.json", "p=00001/foreign", "z"):
        store.put(key, b"12")
        held.put(key, b"12")
    for prefix in ("", "p", "p=00001/", "part-00002", "_holdfast/", f"_holdfast/jobs/{JOB}/", "q"):
        for start_after in ("", files.path(2), files.path(3), files.manifest_key(3), "~"):
            for page_size in (1, 4, 1000):
                seen = iter_objects(store, prefix, start_after, page_size)
                expected = iter_objects(held, prefix, start_after)
                assert [(one.key, one.size_bytes) for one in seen] == [(one.key, one.size_bytes) for one in expected]
    pending = [files.path(number) for number in range(1, files.files, 2)]
    assert [upload.key for upload in iter_uploads(store, "")] == pending


def decoded(files: GeneratedFiles, number: int) -> list[Part]:
    """Return the parts of a file from its task's manifest."""
    for task in range(files.tasks):
        message = files.message(task)
        assert message.ref is not None
        for file in decode_manifest(message.ref, files.manifest(task)).files:
            if file.path == files.path(number):
                assert file.upload_id == f"{number:032x}"
                return [Part(1, etag, size) for etag, size in file.parts]
    raise AssertionError(number)


def test_an_upload_is_used_once(files: GeneratedFiles) -> None:
    store = GeneratedStore(files)
    store.abort_upload(files.path(0), f"{0:032x}")
    store.abort_upload(files.path(0), f"{0:032x}")
    with pytest.raises(NotFoundError):
        store.complete_upload(files.path(0), f"{0:032x}", [])
    with pytest.raises(NotFoundError):
        store.head(files.path(0))
    assert files.visible() == 0


@pytest.mark.parametrize("step", STEPS)
def test_every_step_does_its_work(step: str) -> None:
    STEPS[step](1_000)()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "bytes_per_file"),
    [
        # 222 for the manifests that are kept for the second pass, up to a limit; 20 for the encoded list of manifests,
        # 15 for the packed checksums, 40 for what threads hold at one moment, which varies. One path takes 130.
        ("commit", 400),
        ("overwrite", 100),
        ("overwrite-partitions", 100),
        ("recover", 100),
    ],
)
def test_memory_hardly_grows_with_the_files(step: str, bytes_per_file: int) -> None:
    """Counted by the allocator: a list of all files would take hundreds of bytes per file."""
    peaks = []
    for files in (2_000, 10_000):
        run = STEPS[step](files)
        tracemalloc.start()
        try:
            run()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 8_000 * bytes_per_file, peaks


def test_figures_are_written_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {files: Taken(files=files, cpu_s=files * 1e-4, wall_s=1, peak_mb=3) for files in (1_000, 10_000, 100_000)}
    monkeypatch.setattr(scale, "take_step", lambda _name, files: taken[files])
    assert scale.main(["--only", "commit", "--files", "100000", "--results", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "scale-commit.json").read_text())["figure"] == 1
    assert "10.00 s, 3 MB" in capsys.readouterr().out
