"""Options of a commit: every setting of Hadoop's committers can be set, and a bad value is one sentence."""

from __future__ import annotations

import dataclasses
import re

import pytest

pytest.importorskip("pyspark")

from holdfast.commit import CommitSettings, HadoopSettings
from holdfast.errors import InvalidRequestError
from holdfast.options.write import COMMIT_KEYS, parse_write_options


def settings(**given: str) -> CommitSettings:
    return parse_write_options({"path": "out", **given}, overwrite=False).settings


def test_nothing_given_is_the_defaults() -> None:
    assert settings() == CommitSettings()


def test_every_setting_of_hadoops_committers_is_an_option() -> None:
    fields = {field.name for field in dataclasses.fields(HadoopSettings)}
    assert {re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", key) for key in COMMIT_KEYS} >= fields


def test_flags_turn_what_is_preset() -> None:
    defaults = HadoopSettings()
    for field in dataclasses.fields(HadoopSettings):
        if field.name == "manifest_save_attempts":
            continue
        turned = not getattr(defaults, field.name)
        given = {field.name.replace("_", ""): str(turned)}
        assert settings(**given).hadoop == dataclasses.replace(defaults, **{field.name: turned})


def test_the_others() -> None:
    found = settings(
        allowUnfenced="true",
        scratchDir="/mnt/a b",
        sharedDir="s3://bucket/shared",
        reportDir="/reports",
        manifestSaveAttempts="7",
    )
    assert (found.allow_unfenced, found.scratch_dir, found.shared_dir) == (True, "/mnt/a b", "s3://bucket/shared")
    assert (found.report_dir, found.hadoop.manifest_save_attempts) == ("/reports", 7)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("allowUnfenced", "yes", "not a boolean"),
        ("cleanupSkipped", "", "not a boolean"),
        ("manifestSaveAttempts", "0", "not a whole number from 1 to 1000"),
        ("manifestSaveAttempts", "five", "not a whole number"),
        ("scratchDir", "s3://bucket/x", "expected a local directory"),
        ("scratchDir", " ", "expected a local directory"),
        ("sharedDir", "memory://x", "memory:// exists in one process only"),
        ("reportDir", "", "expected a directory or URL"),
    ],
)
def test_a_bad_value_is_one_sentence(name: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence) as caught:
        settings(**{name: value})
    assert caught.value.variables == {"option": name, "value": value}
    assert "\n" not in str(caught.value)


def test_an_unknown_option_offers_the_nearest() -> None:
    with pytest.raises(InvalidRequestError, match="did you mean allowUnfenced"):
        settings(alowUnfenced="true")
