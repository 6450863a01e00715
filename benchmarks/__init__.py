"""Benchmark Holdfast against its alternatives, both in the same run. See docs/explanation/benchmarks.md."""
