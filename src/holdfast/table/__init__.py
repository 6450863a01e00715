"""Write record batches as partitioned files through a task attempt, and read them back; say what a table is."""
