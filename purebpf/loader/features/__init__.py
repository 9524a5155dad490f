"""Finds what this kernel can do by trying it."""
