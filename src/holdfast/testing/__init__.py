"""Run S3 servers for the demo and for tests, including the tests of Holdfast's users."""
