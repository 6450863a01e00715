"""Read and write CSV files."""
