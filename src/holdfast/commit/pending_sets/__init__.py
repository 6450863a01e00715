"""Complete, abort and recover jobs that are recorded as pending sets: shared by `magic` and `staging`."""
