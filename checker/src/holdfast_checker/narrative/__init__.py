"""Describe counterexamples in words, as numbered sentences."""
