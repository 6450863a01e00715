"""Conversion from the calendars of Spark before 3.0 and of Java."""
