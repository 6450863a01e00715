"""Read and write Avro object container files."""
