"""The BTF of this kernel and its modules."""
