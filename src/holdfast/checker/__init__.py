"""Run the shipped code in simulated worlds, through everything that can go wrong."""
