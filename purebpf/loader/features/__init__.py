"""Detects the features of this kernel by trying them."""
