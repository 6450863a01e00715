"""Figures of Holdfast, each measured beside what it is compared with, in one run. See docs/benchmarks.md."""
