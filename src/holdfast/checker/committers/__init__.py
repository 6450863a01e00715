"""Check committers: define a job's actors, the properties that must hold, and how to tell a history in words."""
