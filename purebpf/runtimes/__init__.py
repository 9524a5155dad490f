"""Layouts and frames of language runtimes. Pure."""
