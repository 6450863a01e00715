"""Write real flights with real Spark to a real S3 server while tasks and the driver are killed: see `run`."""
