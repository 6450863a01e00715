"""Model-check shipped code in simulated worlds: explore their executions (*histories*), and find counterexamples.

A *world* is a set of actors (processes) with the resources that they share. Nothing here depends on jobs or committers.
"""
