"""Runs scripts: attaches their programs, takes their events, and prints their maps."""
