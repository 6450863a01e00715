"""The page of a story: one complete file, which does not interpret the data."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from holdfast_checker.narrative.sentences import Thing
from holdfast_checker.narrative.story import Story, page
from tests.checker.narrative.stories import Found, find
from tests.patience import PATIENCE_S

_NASTY = "a</script><b>&amp;{{title}}\u2028<!--\"'\\u003c"
_VOID = {"meta"}


class _Page(HTMLParser):
    """Tags, their attributes, and the text of scripts; tags must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self.shown: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.attributes |= {name for name, _ in attrs}
        if tag == "script":
            self.scripts.append("")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts[-1] += data
        elif not self._open or self._open[-1] != "style":
            self.shown.append(data)

    @property
    def document(self) -> dict[str, Any]:
        found = json.loads(self.scripts[0])
        assert isinstance(found, dict)
        return found


@pytest.fixture(scope="module")
def found() -> dict[str, Found]:
    return find("direct")


def _with_nasty_keys(story: Story) -> Story:
    """Return the same story about keys that try to break out of their context."""

    def told(sentence: Any) -> Any:
        calls = [
            replace(call, words=_NASTY, arguments=[_NASTY], things=(*call.things, Thing(_NASTY, _NASTY, _NASTY)))
            for call in sentence.calls
        ]
        return replace(sentence, text=_NASTY, calls=tuple(calls))

    return replace(story, title=_NASTY, verdict=_NASTY, sentences=tuple(map(told, story.sentences)))


def test_the_page_is_whole_and_holds_every_step(found: dict[str, Found]) -> None:
    for one in found.values():
        parsed = _Page(page(one.story))
        assert parsed.document == one.story.document()
        assert len(parsed.document["calls"]) == len(one.history.steps)
        shown = "".join(parsed.shown)
        assert all(sentence.text in shown for sentence in one.story.sentences)  # for a browser without scripts
        assert one.story.verdict in shown


def test_the_page_asks_nobody_for_anything(found: dict[str, Found]) -> None:
    text = page(found["C4"].story)
    parsed = _Page(text)
    assert not {"src", "href", "srcset", "action"} & parsed.attributes
    assert not {"link", "img", "iframe", "object"} & set(parsed.tags)
    assert not re.search(r"https?:|url\(|@import|\bfetch\b|XMLHttpRequest|\bimport\b", text)
    assert "default-src 'none'" in text


def test_what_the_data_say_is_never_html(found: dict[str, Found]) -> None:
    plain, story = found["C4"].story, _with_nasty_keys(found["C4"].story)
    parsed = _Page(page(story))
    assert parsed.tags == _Page(page(plain)).tags
    assert parsed.document == story.document()
    assert _NASTY in "".join(parsed.shown)
    assert "innerHTML" not in page(story)


def test_the_page_is_the_same_in_every_run(found: dict[str, Found]) -> None:
    assert page(find("direct")["C4"].story) == page(found["C4"].story)


def test_the_script_finds_what_it_looks_for(found: dict[str, Found]) -> None:
    parsed = _Page(page(found["C4"].story))
    wanted = set(re.findall(r'\bby\("(\w+)"\)', parsed.scripts[1]))
    assert wanted and wanted <= set(parsed.ids)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {"first", "back", "next", "last"} <= set(parsed.ids)
    assert {"Home", "End", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"} <= set(
        re.findall(r"\b[A-Z]\w+(?=: \")", parsed.scripts[1])
    )


def test_the_script_can_be_parsed(found: dict[str, Found], tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine to parse the script with")
    script = tmp_path / "timeline.js"
    script.write_text(_Page(page(found["C4"].story)).scripts[1], encoding="utf-8")
    run = subprocess.run([node, "--check", str(script)], capture_output=True, text=True, timeout=PATIENCE_S)
    assert run.returncode == 0, run.stderr
