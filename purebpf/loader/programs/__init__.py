"""Handles of programs and links."""
