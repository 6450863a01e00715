"""Read and write the text that CSV, JSON lines and text files have in common."""
