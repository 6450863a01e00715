"""Read and write JSON lines files."""
