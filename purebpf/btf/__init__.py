"""BTF: types, values by type, and CO-RE matching. Pure."""
