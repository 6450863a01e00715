"""Explore the histories of worlds of any kind, and find counterexamples. Nothing in this package depends on jobs."""
