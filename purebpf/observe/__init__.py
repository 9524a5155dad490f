"""Live observation: who runs what, and its stacks and names."""
