"""Read and write ORC files."""
