"""Explore worlds of any kind: histories, faults, properties, counterexamples. Knows nothing of jobs."""
