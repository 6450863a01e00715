"""A store for simulated worlds, made of the reference store's own code."""
