"""Facts about this machine, and its descriptors, ids and pins."""
