"""Keep records in an SQLite file, which several processes of one machine may share."""
