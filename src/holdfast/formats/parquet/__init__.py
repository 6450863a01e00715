"""Read and write Parquet files."""
