"""Run the shipped code in simulated worlds, which interleave its processes and inject faults."""
