"""Worlds of committers: who acts in a job, what has to hold, and the words for it."""
