"""Turns addresses of this host into names and source lines."""
