"""Ports that strangers can connect to."""
