"""Types of calls, a file for each family of functions."""
