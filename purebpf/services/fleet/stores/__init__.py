"""Where the tables are: a directory, or a bucket."""
