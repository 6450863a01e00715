"""The machinery: worlds of any kind, their histories, and what was found in them. Knows nothing of jobs."""
