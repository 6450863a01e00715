"""Show a story as a page to step through: one lane for each actor, time downwards, and the state after each call.

The page is a single file that loads nothing: its script, its style and its data are in it, and its content security
policy forbids the browser to load more. It can be opened from a local disk, without a web server.
"""

from __future__ import annotations

import html
import importlib.resources
import json
import re

from holdfast_checker.narrative.story import Story

_FIELD = re.compile(r"\{\{(\w+)\}\}")


def page(story: Story) -> str:
    """Return the page of a story.

    Guarantee: the same story always gives the same page. Text of the story is never interpreted as HTML or as a script.
    """
    fields = {
        "title": html.escape(story.title),
        "summary": html.escape(f"{story.world}: {story.summary}" if story.summary else story.world),
        "meaning": html.escape(f"{story.property_name}: {story.meaning}" if story.meaning else ""),
        "verdict": html.escape(story.verdict),
        "sentences": "".join(f"<li>{html.escape(sentence.text)}</li>" for sentence in story.sentences),
        "story": _embedded(story),
    }
    template = (
        importlib.resources.files("holdfast_checker.narrative").joinpath("timeline.html").read_text(encoding="utf-8")
    )
    return _FIELD.sub(lambda found: fields[found[1]], template)


def _embedded(story: Story) -> str:
    """Encode the story's document as JSON in which an HTML parser cannot find the end of a script."""
    text = json.dumps(story.document(), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
