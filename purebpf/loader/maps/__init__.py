"""Handles of maps, and their elements."""
