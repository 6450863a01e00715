"""Measure computation units: committed units per second, where the time goes, work lists and memory."""
