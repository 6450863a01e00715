"""Check committers: define the actors of a job, the properties that must hold, and how to tell a history in words."""
