"""Calls of 32-bit programs: what they pass, in which layout, and what is copied of it."""
