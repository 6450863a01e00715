"""Read and write lines of text, for CSV, JSON lines and text files."""
