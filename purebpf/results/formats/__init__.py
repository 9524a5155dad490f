"""Writes results: one module for each format."""
