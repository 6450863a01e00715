"""Convert dates and timestamps from the calendars of Spark before 3.0."""
