"""The places of the tables: a directory, or a bucket."""
