"""Runs a measurement without a terminal: targets, waiting, child processes, limits, provenance."""
