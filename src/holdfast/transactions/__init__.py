"""Commit optimistic transactions over versioned records in SQLite, PostgreSQL, MySQL/MariaDB or memory."""
