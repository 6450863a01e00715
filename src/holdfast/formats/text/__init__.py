"""Read and write plain text files."""
