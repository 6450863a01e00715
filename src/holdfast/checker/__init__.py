"""Simulated worlds in which the code that ships is taken through all that may go wrong."""
