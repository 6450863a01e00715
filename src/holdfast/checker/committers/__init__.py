"""Check committers: who acts in a job, what must hold, and the words for it."""
