"""Builds profiles from the counts of kernel programs and from perf.data files."""
