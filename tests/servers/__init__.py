"""Servers and fakes for tests and benchmarks."""
