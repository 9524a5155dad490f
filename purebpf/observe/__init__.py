"""Live observation: processes, their stacks and names."""
