"""A referee for profilers: programs that measure themselves, and a score for each profiler.

    python -P -m purebpf.testing.referee

The rules are in `purebpf.testing.referee.scores`; docs/referee.md explains the table.
"""
