"""Keep records in PostgreSQL; one function call in the database validates and applies a group of transactions."""
