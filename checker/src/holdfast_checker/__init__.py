"""Run the shipped code in simulated worlds, in which processes are interleaved and faults are injected."""
