"""Explore the histories of simulated worlds, and find counterexamples.

A *history* is one execution of a world, step by step. Nothing in this package depends on jobs or committers.
"""
