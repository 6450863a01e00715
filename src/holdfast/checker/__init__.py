"""Run the shipped code in simulated worlds, with every interleaving and every fault."""
