"""Keep records in MySQL 8 or MariaDB 10.6 and newer, which many machines may share."""
