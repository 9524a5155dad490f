"""Sample filters in the kernel: compiled, loaded, or pinned by root."""
