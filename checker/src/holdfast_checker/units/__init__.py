"""Model-check computation units: task attempts that run the shipped code on a simulated database."""
