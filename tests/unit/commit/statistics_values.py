"""Generate statistics for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.commit.statistics import DurationStatistics, Statistics

_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=6)
_COUNTS = st.integers(0, 2**40)


@st.composite
def _durations(draw: st.DrawFn) -> DurationStatistics:
    count = draw(st.integers(1, 2**20))
    least = draw(_COUNTS)
    greatest = least + draw(_COUNTS)
    return DurationStatistics(count, draw(st.integers(0, count)), least * count, least, greatest)


@st.composite
def statistics(draw: st.DrawFn) -> Statistics:
    """Generate statistics whose counters and durations have different names, as Hadoop's format requires."""
    durations = draw(st.dictionaries(_NAMES.map("op_{}".format), _durations(), max_size=4))
    return Statistics(
        counters=draw(st.dictionaries(_NAMES.map("count_{}".format), _COUNTS, max_size=4)),
        gauges=draw(st.dictionaries(_NAMES, st.integers(-(2**62), 2**62), max_size=3)),
        durations=durations,
    )
