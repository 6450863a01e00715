"""Read and write Arrow IPC files."""
