"""Convert and check Arrow columns for all formats."""
