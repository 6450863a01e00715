"""Complete, abort and recover jobs whose pending uploads are listed in pending sets: for `magic` and `staging`."""
