"""Measure Holdfast side by side with what it is compared with: docs/explanation/benchmarks.md."""
