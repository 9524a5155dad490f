"""Reads saved profiles, and names the addresses in them."""
