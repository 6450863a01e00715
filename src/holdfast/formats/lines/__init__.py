"""What the line-based formats share: CSV, JSON lines and text."""
