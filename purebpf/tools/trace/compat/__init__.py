"""Calls of 32-bit programs: their arguments, layouts and copies."""
