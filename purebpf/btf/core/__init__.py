"""Matches CO-RE relocations against a target BTF."""
