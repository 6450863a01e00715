"""Check that every relative link in a Markdown file leads to a file, and to a heading if it names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.source_tree import ROOT, text_files

_FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

_PAGES = {name: text for name, text in text_files() if name.endswith(".md")}


def _anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub and the site create them."""
    headings = _HEADING.findall(_FENCED.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", _PAGES)
def test_links_lead_somewhere(name: str) -> None:
    text = _CODE.sub("", _FENCED.sub("", _PAGES[name]))
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), f"{name} links to {link}"
        if anchor:
            known = _anchors(target.read_text(encoding="utf-8"))
            assert anchor in known, f"{name} links to {link}; there are {sorted(known)}"


def test_it_finds_links_and_headings() -> None:
    assert _LINK.findall("see [a](b.md#c) and [d](e)") == ["b.md#c", "e"]
    assert _anchors("# One\n## What's `two_phase`?\n") == {"one", "whats-two_phase"}
    assert Path(ROOT / "README.md").exists()
