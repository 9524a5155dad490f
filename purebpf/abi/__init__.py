"""Definitions of the kernel: enums, layouts, instructions, section names."""
