"""Follows processes as they start, map code, and end during a run."""
