"""Interpreters of live processes."""
