"""Put the calls and the state of a job into words."""
